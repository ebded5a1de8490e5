package provider

import "github.com/tidwall/gjson"

// readGemini reads one GenerateContentResponse: an event of a stream, or the whole answer.
func readGemini(r *Reader, name, data string) Mark {
	var candidates, failure, block, usage, id, model gjson.Result
	known := false
	gjson.Parse(data).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "candidates":
			candidates = value
		case "promptFeedback":
			block = value.Get("blockReason")
		case "usageMetadata":
			usage = value
		case "responseId":
			id = value
		case "modelVersion":
			model = value
		case "error":
			failure = value
			return true
		default:
			return true
		}
		known = true
		return true
	})
	if isError(failure) {
		return r.fail(data)
	}
	if !known {
		return readGeneric(r, name, data)
	}
	r.known = true
	r.identify(id, model)
	r.meter(usage)
	var m Mark
	candidates.ForEach(func(_, candidate gjson.Result) bool {
		content, finish := r.readCandidate(candidate)
		m.Content, m.Finish = m.Content || content, m.Finish || finish
		return true
	})
	if said(block) != "" {
		r.policy = true
		return r.conclude()
	}
	return m
}

func (r *Reader) readCandidate(candidate gjson.Result) (content, finish bool) {
	var index int64
	reason := ""
	candidate.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "index":
			index = value.Int()
		case "content":
			content = r.readParts(value.Get("parts")) || content
		case "finishReason":
			reason = said(value)
		case "groundingMetadata", "urlContextMetadata", "groundingAttributions":
			if !empty(value) {
				content, r.tool = true, true
			}
		case "citationMetadata":
			content = content || !empty(value)
		}
		return true
	})
	finish = reason != "" && reason != "FINISH_REASON_UNSPECIFIED"
	r.refused(reason)
	r.advance(index, content, finish)
	return content, finish
}

// readParts reports whether one of the parts carries anything. A signature alone does.
func (r *Reader) readParts(parts gjson.Result) (content bool) {
	parts.ForEach(func(_, part gjson.Result) bool {
		part.ForEach(func(key, value gjson.Result) bool {
			switch key.Str {
			case "thought", "partMetadata", "videoMetadata", "mediaResolution":
				return true
			case "executableCode", "codeExecutionResult", "toolCall", "toolResponse":
				r.tool = true
			}
			content = content || !empty(value)
			return true
		})
		return true
	})
	return content
}
