package snapshot

import "maps"

// Undated is a status, as JSON has it, without the times of its conditions. Who writes a status
// sets them, so they tell nothing of what follows from the input.
func Undated(status any) any {
	fields, _ := status.(map[string]any)
	list, _ := fields["conditions"].([]any)
	if len(list) == 0 {
		return status
	}
	undated := make([]any, len(list))
	for i, element := range list {
		undated[i] = element
		if condition, ok := element.(map[string]any); ok {
			condition = maps.Clone(condition)
			delete(condition, "lastTransitionTime")
			undated[i] = condition
		}
	}
	out := maps.Clone(fields)
	out["conditions"] = undated
	return out
}
