package v1

// StringMatch matches a string in exactly one way.
//
// +kubebuilder:validation:XValidation:rule="[has(self.exact), has(self.prefix), has(self.regex), has(self.suffix)].filter(x, x).size() == 1",message="set exactly one of exact, prefix, regex and suffix"
// +kubebuilder:validation:XValidation:rule="!(has(self.regex) && has(self.ignoreCase) && self.ignoreCase)",message="ignoreCase has no effect on regex; remove it and write the regex so that it takes both cases, for example with [Aa]"
type StringMatch struct {
	// Exact matches the whole string.
	// +kubebuilder:validation:MinLength=1
	Exact string `json:"exact,omitempty"`
	// Prefix matches the beginning of the string.
	// +kubebuilder:validation:MinLength=1
	Prefix string `json:"prefix,omitempty"`
	// Regex is a regular expression that must match the whole string. Meshes use RE2, so avoid what only ECMAScript has.
	// +kubebuilder:validation:MinLength=1
	Regex string `json:"regex,omitempty"`
	// Suffix matches the end of the string.
	// +kubebuilder:validation:MinLength=1
	Suffix string `json:"suffix,omitempty"`
	// IgnoreCase makes exact, prefix and suffix blind to upper and lower case.
	IgnoreCase bool `json:"ignoreCase,omitempty"`
}
