package provider

import "github.com/tidwall/gjson"

// meter takes the figures of a usage object. Later figures replace earlier ones, since all providers
// count from the start; a figure that is not there leaves the earlier one.
func (r *Reader) meter(v gjson.Result) {
	if !v.IsObject() {
		return
	}
	input, output := int64(-1), int64(-1)
	count(v, &input, &output)
	r.metered = true
	r.usage.Raw = append(r.usage.Raw[:0], v.Raw...)
	if input >= 0 {
		r.usage.InputTokens = input
	}
	if output >= 0 {
		r.usage.OutputTokens = output
	}
}

// count adds up what v says of tokens. The names are those of all dialects together: none of them
// means two things.
func count(v gjson.Result, input, output *int64) {
	v.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "prompt_tokens", "input_tokens", "promptTokenCount", "toolUsePromptTokenCount",
			"inputTokens", "inputTokenCount", "prompt_eval_count", "prompt_token_count", "inputTextTokenCount":
			*input = max(*input, 0) + value.Int()
		case "completion_tokens", "output_tokens", "candidatesTokenCount", "thoughtsTokenCount",
			"outputTokens", "outputTokenCount", "eval_count", "generation_token_count", "totalOutputTextTokenCount":
			*output = max(*output, 0) + value.Int()
		case "tokens": // Cohere
			if value.IsObject() {
				count(value, input, output)
			}
		}
		return true
	})
}

// Total is the provider's own total, or the sum where it gives none.
func (u Usage) Total() int64 {
	for _, name := range []string{"total_tokens", "totalTokenCount", "totalTokens"} {
		if v := gjson.GetBytes(u.Raw, name); v.Type == gjson.Number {
			return max(v.Int(), u.InputTokens+u.OutputTokens)
		}
	}
	return u.InputTokens + u.OutputTokens
}
