package v1

import commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"

// HttpMatcher matches requests that meet all of its conditions. An element without conditions matches every request.
type HttpMatcher struct {
	// Name of the matcher, for the reader; it has no effect.
	Name string `json:"name,omitempty"`
	// Uri matches the path.
	Uri *commonv1.StringMatch `json:"uri,omitempty"`
	// Headers must all match.
	// +kubebuilder:validation:MaxItems=100
	Headers []HeaderMatcher `json:"headers,omitempty"`
	// QueryParameters must all match.
	// +kubebuilder:validation:MaxItems=100
	QueryParameters []QueryParameterMatcher `json:"queryParameters,omitempty"`
	// Method is the HTTP method, in upper case; omitted means any.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == self.upperAscii()",messageExpression="'method ' + self + ' can never match, as HTTP methods are in upper case; write ' + self.upperAscii()",message="HTTP methods are in upper case"
	Method string `json:"method,omitempty"`
}

// HeaderMatcher matches one request header.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) && size(self.name) > 0",message="name is needed: the header to look at"
type HeaderMatcher struct {
	// Name of the header; upper and lower case are the same.
	// +kubebuilder:validation:MaxLength=1024
	Name string `json:"name,omitempty"`
	// Value that the header must have; omitted means that the header only has to be there.
	Value string `json:"value,omitempty"`
	// Regex takes value as a regular expression for the whole header value.
	Regex bool `json:"regex,omitempty"`
	// InvertMatch turns the result around.
	InvertMatch bool `json:"invertMatch,omitempty"`
}

// QueryParameterMatcher matches one parameter of the request's query.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) && size(self.name) > 0",message="name is needed: the query parameter to look at"
type QueryParameterMatcher struct {
	// Name of the parameter.
	// +kubebuilder:validation:MaxLength=1024
	Name string `json:"name,omitempty"`
	// Value that the parameter must have; omitted means that it only has to be there.
	Value string `json:"value,omitempty"`
	// Regex takes value as a regular expression for the whole parameter value.
	Regex bool `json:"regex,omitempty"`
}
