package provider

import (
	"fmt"

	"github.com/tidwall/gjson"
)

// readOllama reads a line of Ollama's chat or generate, or a whole answer.
func readOllama(r *Reader, name, data string) Mark {
	var failure, done, model, in, out gjson.Result
	content, known := false, false
	gjson.Parse(data).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "message", "response", "thinking", "tool_calls", "image":
			known = true
			content = content || filled(value)
		case "done":
			known, done = true, value
		case "error":
			failure = value
		case "model":
			model = value
		case "prompt_eval_count":
			in = value
		case "eval_count":
			out = value
		}
		return true
	})
	if isError(failure) {
		return r.fail(data)
	}
	if !known {
		return readGeneric(r, name, data)
	}
	r.identify(gjson.Result{}, model)
	if done.Type != gjson.True {
		return r.progress(content, false)
	}
	if in.Exists() || out.Exists() { // the figures stand among the other fields
		r.meter(gjson.Parse(fmt.Sprintf(`{"prompt_eval_count":%d,"eval_count":%d}`, in.Int(), out.Int())))
	}
	r.progress(content, true)
	m := r.conclude()
	m.Content = content
	return m
}
