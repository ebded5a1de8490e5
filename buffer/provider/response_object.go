package provider

import (
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/spool-dev/spool/buffer/frame"
)

// ResponseObject returns the response object of OpenAI's Responses that a chunk in framing k carries,
// byte for byte as the provider sent it, or nil where it carries none. Events that change the
// response's status carry one, the terminal event the assembled one; a body that came in one piece is
// one. The result may be a part of chunk: it is good as long as chunk is, and must not be written.
func ResponseObject(k frame.Kind, chunk []byte) []byte {
	if k != frame.SSE {
		return responseIn(view(chunk))
	}
	b, _ := parseBlock(chunk, nil)
	switch {
	case b.lines == 0: // plain JSON though a stream was announced, if anything
		return responseIn(view(chunk))
	case b.lines == 1 || valid(b.data):
		return responseIn(b.data)
	}
	var last []byte // events between which the provider forgot the blank line
	eachData(chunk, func(data string) {
		if object := responseIn(data); object != nil {
			last = object
		}
	})
	return last
}

func responseIn(data string) []byte {
	if !strings.HasPrefix(strings.TrimLeft(data, " \t\r\n"), "{") {
		return nil
	}
	object := gjson.Get(data, "response").Raw
	if said(gjson.Get(data, "object")) == "response" {
		object = data
	}
	if !strings.HasPrefix(strings.TrimLeft(object, " \t\r\n"), "{") || !valid(object) {
		return nil
	}
	return unview(object)
}

// ResponsePending reports whether a response object says that its response goes on, and whether it
// does so in the background: then the provider goes on by itself, whoever reads.
func ResponsePending(object []byte) (pending, background bool) {
	switch status := gjson.GetBytes(object, "status"); said(status) {
	case "", "queued", "in_progress":
		return true, gjson.GetBytes(object, "background").Type == gjson.True
	}
	return false, false
}

// CancelledResponse returns a response object whose response was cancelled: its status says so, all
// else is as the provider sent it.
func CancelledResponse(object []byte) []byte {
	return restate(object, "status", "cancelled")
}

// InterruptedResponse returns a response object whose response was cut: its status is failed, and its
// error, where the provider has told none, says of what. All else is as the provider sent it. A
// response that the provider itself has called failed or cancelled is returned unchanged.
func InterruptedResponse(object []byte, c Cut) []byte {
	switch said(gjson.GetBytes(object, "status")) {
	case "failed", "cancelled":
		return object
	}
	object = restate(object, "status", "failed")
	if isError(gjson.GetBytes(object, "error")) {
		return object
	}
	return restate(object, "error", responseError{Code: c.Reason, Message: c.message()})
}

type responseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// restate sets one field of a JSON object.
func restate(object []byte, field string, value any) []byte {
	out, err := sjson.SetBytes(object, field, value)
	if err != nil {
		panic(err) // the field is a constant and the value has a JSON form
	}
	return out
}
