package provider

import "github.com/tidwall/gjson"

// readChat reads a chunk of OpenAI's chat completions, of the older completions, and of everything
// that is compatible with them, or a whole answer.
func readChat(r *Reader, name, data string) Mark {
	var choices, id, model, failure, usage gjson.Result
	stray, told := false, false
	gjson.Parse(data).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "choices":
			choices = value
		case "id":
			id = value
		case "model":
			model = value
		case "error":
			failure = value
		case "object":
			told = value.Str == "error" // vLLM
		case "usage":
			usage = value
		case "x_groq":
			if figures := value.Get("usage"); figures.Exists() {
				usage = figures
			}
		case "citations", "annotations", "search_results", "images":
			stray = stray || !empty(value)
		}
		return true
	})
	if told || isError(failure) {
		return r.fail(data)
	}
	if !choices.IsArray() {
		return readGeneric(r, name, data)
	}
	r.known = true
	r.identify(id, model)
	r.meter(usage)
	if stray {
		r.advance(strayChoice, true, false)
	}
	m := Mark{Content: stray}
	choices.ForEach(func(_, choice gjson.Result) bool {
		content, finish, failed := r.readChoice(choice)
		m.Content = m.Content || content
		m.Finish = m.Finish || finish
		m.Failed = m.Failed || failed
		return true
	})
	if m.Failed {
		return r.fail(data)
	}
	return m
}

// readChoice reads one choice. The last words of an answer and its finish may share a chunk, so
// content goes first.
func (r *Reader) readChoice(choice gjson.Result) (content, finish, failed bool) {
	var index int64
	reason := ""
	choice.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "index":
			index = value.Int()
		case "delta", "message":
			content = r.readDelta(value) || content
		case "text": // the older completions
			content = said(value) != "" || content
		case "citations", "annotations", "images", "audio":
			content = filled(value) || content
		case "finish_reason":
			reason = said(value)
		case "error":
			failed = failed || isError(value)
		}
		return true
	})
	if reason == "error" {
		failed = true
	}
	if failed {
		return content, false, true
	}
	r.refused(reason)
	r.advance(index, content, reason != "")
	return content, reason != "", false
}

// readDelta reports whether a delta carries anything besides its role. Fields that are not known
// count: compatibles add their own.
func (r *Reader) readDelta(delta gjson.Result) (content bool) {
	if !delta.IsObject() {
		return false
	}
	delta.ForEach(func(key, value gjson.Result) bool {
		if describes(key.Str) || !filled(value) {
			return true
		}
		content = true
		switch key.Str {
		case "refusal":
			r.policy = true
		case "executed_tools": // Groq's compound models
			r.tool = true
		}
		return true
	})
	return content
}
