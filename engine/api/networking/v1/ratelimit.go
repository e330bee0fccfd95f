package v1

import commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"

// RouteRateLimit bounds the number of requests.
//
// +kubebuilder:validation:XValidation:rule="[has(self.basic), has(self.advanced), has(self.configRefs)].filter(x, x).size() == 1",message="set exactly one of basic, advanced and configRefs"
type RouteRateLimit struct {
	// Basic sets a limit for authorized and one for anonymous users.
	Basic *BasicRateLimit `json:"basic,omitempty"`
	// Advanced describes requests to the rate-limit server.
	Advanced *AdvancedRateLimit `json:"advanced,omitempty"`
	// ConfigRefs are rate-limit configurations kept elsewhere.
	ConfigRefs *commonv1.ObjectRefList `json:"configRefs,omitempty"`
}

// BasicRateLimit sets a limit for authorized and one for anonymous users.
type BasicRateLimit struct {
	// AuthorizedLimits hold for each user who has logged in.
	AuthorizedLimits *RateLimit `json:"authorizedLimits,omitempty"`
	// AnonymousLimits hold for each address without a user.
	AnonymousLimits *RateLimit `json:"anonymousLimits,omitempty"`
}

// RateLimit is a number of requests in a unit of time.
type RateLimit struct {
	// Unit of time.
	Unit RateLimitUnit `json:"unit,omitempty"`
	// RequestsPerUnit is the number of requests that are let through in it.
	// +kubebuilder:validation:Minimum=0
	RequestsPerUnit uint32 `json:"requestsPerUnit,omitempty"`
}

// RateLimitUnit is a unit of time.
//
// +kubebuilder:validation:Enum=UNKNOWN;SECOND;MINUTE;HOUR;DAY
type RateLimitUnit string

const (
	// RateLimitUnitUnknown is no unit.
	RateLimitUnitUnknown RateLimitUnit = "UNKNOWN"
	// RateLimitUnitSecond is a second.
	RateLimitUnitSecond RateLimitUnit = "SECOND"
	// RateLimitUnitMinute is a minute.
	RateLimitUnitMinute RateLimitUnit = "MINUTE"
	// RateLimitUnitHour is an hour.
	RateLimitUnitHour RateLimitUnit = "HOUR"
	// RateLimitUnitDay is a day.
	RateLimitUnitDay RateLimitUnit = "DAY"
)

// AdvancedRateLimit describes requests to the rate-limit server.
type AdvancedRateLimit struct {
	// Actions each make one descriptor of the request.
	// +kubebuilder:validation:MaxItems=32
	Actions []RateLimitActions `json:"actions,omitempty"`
}

// RateLimitActions make one descriptor.
type RateLimitActions struct {
	// Actions make an ordered tuple: the server compares it in this order.
	// +kubebuilder:validation:MaxItems=32
	Actions []RateLimitAction `json:"actions,omitempty"`
	// SetActions make a set: the order does not matter.
	// +kubebuilder:validation:MaxItems=32
	SetActions []RateLimitAction `json:"setActions,omitempty"`
}

// RateLimitAction makes one entry of a descriptor.
//
// +kubebuilder:validation:XValidation:rule="[has(self.sourceCluster), has(self.destinationCluster), has(self.requestHeaders), has(self.remoteAddress), has(self.genericKey), has(self.headerValueMatch)].filter(x, x).size() == 1",message="set exactly one of sourceCluster, destinationCluster, requestHeaders, remoteAddress, genericKey and headerValueMatch"
type RateLimitAction struct {
	// SourceCluster is the proxy's cluster of the caller.
	SourceCluster *commonv1.Empty `json:"sourceCluster,omitempty"`
	// DestinationCluster is the proxy's cluster that the request goes to.
	DestinationCluster *commonv1.Empty `json:"destinationCluster,omitempty"`
	// RequestHeaders is the value of a header.
	RequestHeaders *RateLimitRequestHeaders `json:"requestHeaders,omitempty"`
	// RemoteAddress is the address of the caller.
	RemoteAddress *commonv1.Empty `json:"remoteAddress,omitempty"`
	// GenericKey is a fixed value.
	GenericKey *RateLimitGenericKey `json:"genericKey,omitempty"`
	// HeaderValueMatch is a fixed value, if headers match.
	HeaderValueMatch *RateLimitHeaderValueMatch `json:"headerValueMatch,omitempty"`
}

// RateLimitRequestHeaders takes the value of a header.
type RateLimitRequestHeaders struct {
	// HeaderName is the header to read.
	HeaderName string `json:"headerName,omitempty"`
	// DescriptorKey is the key under which its value is sent.
	DescriptorKey string `json:"descriptorKey,omitempty"`
}

// RateLimitGenericKey is a fixed value.
type RateLimitGenericKey struct {
	// DescriptorValue is the value that is sent.
	DescriptorValue string `json:"descriptorValue,omitempty"`
}

// RateLimitHeaderValueMatch sends a fixed value if headers match.
type RateLimitHeaderValueMatch struct {
	// DescriptorValue is the value that is sent.
	DescriptorValue string `json:"descriptorValue,omitempty"`
	// ExpectMatch false sends the value if the headers do not match; omitted means true.
	ExpectMatch *bool `json:"expectMatch,omitempty"`
	// Headers must all match.
	// +kubebuilder:validation:MaxItems=32
	Headers []RateLimitHeaderMatcher `json:"headers,omitempty"`
}

// RateLimitHeaderMatcher matches one header in one way.
//
// +kubebuilder:validation:XValidation:rule="[has(self.exactMatch), has(self.regexMatch), has(self.rangeMatch), has(self.presentMatch), has(self.prefixMatch), has(self.suffixMatch)].filter(x, x).size() <= 1",message="set at most one of exactMatch, regexMatch, rangeMatch, presentMatch, prefixMatch and suffixMatch"
type RateLimitHeaderMatcher struct {
	// Name of the header.
	Name string `json:"name,omitempty"`
	// ExactMatch is the whole value.
	ExactMatch string `json:"exactMatch,omitempty"`
	// RegexMatch is a regular expression for the whole value.
	RegexMatch string `json:"regexMatch,omitempty"`
	// RangeMatch takes the value as a number that lies in a range.
	RangeMatch *Int64Range `json:"rangeMatch,omitempty"`
	// PresentMatch true wants the header to be there, false wants it not to be.
	PresentMatch *bool `json:"presentMatch,omitempty"`
	// PrefixMatch is the beginning of the value.
	PrefixMatch string `json:"prefixMatch,omitempty"`
	// SuffixMatch is the end of the value.
	SuffixMatch string `json:"suffixMatch,omitempty"`
	// InvertMatch turns the result around.
	InvertMatch bool `json:"invertMatch,omitempty"`
}

// Int64Range is a range of whole numbers.
type Int64Range struct {
	// Start is the first number of the range.
	Start int64 `json:"start,omitempty"`
	// End is the first number after the range.
	End int64 `json:"end,omitempty"`
}
