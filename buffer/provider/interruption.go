package provider

import (
	"bytes"
	"fmt"

	"github.com/spool-dev/spool/buffer/frame"
)

// Cut says where and why an answer stopped short.
type Cut struct {
	RunID    string
	Reason   string // in the contract's words
	Limit    string // the setting whose limit the answer went over; empty for none
	Next     int64  // the position of the first chunk that did not come
	Sequence int64  // for Responses: the sequence_number of the event that tells of it
}

func (c Cut) message() string {
	why := c.Reason
	if c.Limit != "" {
		why += " " + c.Limit
	}
	return fmt.Sprintf("run %s was interrupted: %s; next position %d", c.RunID, why, c.Next)
}

// interrupted is the error type of OpenAI's shapes.
const interrupted = "spool_interrupted"

// Interruption returns the error event that tells a caller of dialect d, in framing k, that the
// answer stopped short, or nil where only an abort can. The same cut is always the same bytes; they
// are no part of the run.
func Interruption(d Dialect, k frame.Kind, c Cut) []byte {
	message := c.message()
	switch k {
	case frame.NDJSON:
		return append(encode(ollamaError{Error: message}), '\n')
	case frame.AWS:
		return appendMessage(nil, encode(bedrockError{Message: message}),
			":exception-type", "modelStreamErrorException",
			":content-type", "application/json",
			":message-type", "exception")
	case frame.SSE:
		return sseInterruption(d, c, message)
	}
	return nil
}

func sseInterruption(d Dialect, c Cut, message string) []byte {
	switch d {
	case OpenAIChat:
		return fmt.Appendf(nil, "data: %s\n\n", encode(openAIError{openAIDetail{Message: message, Type: interrupted, Code: c.Reason}}))
	case OpenAIResponses:
		return fmt.Appendf(nil, "event: error\ndata: %s\n\n", encode(responsesError{
			Type: "error", Sequence: c.Sequence, Code: c.Reason, Message: message,
			Error: responsesDetail{Type: interrupted, Code: c.Reason, Message: message},
		}))
	case Anthropic:
		return fmt.Appendf(nil, "event: error\ndata: %s\n\n", encode(anthropicError{
			Type: "error", Error: anthropicDetail{Type: "api_error", Message: message},
		}))
	case Gemini:
		return fmt.Appendf(nil, "data: %s\r\n\r\n", encode(geminiCut{geminiCutDetail{Code: 502, Status: "UNAVAILABLE", Message: message}}))
	}
	return nil
}

type (
	responsesError struct {
		Type     string          `json:"type"`
		Sequence int64           `json:"sequence_number"`
		Code     string          `json:"code"`
		Message  string          `json:"message"`
		Param    *string         `json:"param"`
		Error    responsesDetail `json:"error"`
	}
	responsesDetail struct {
		Type    string `json:"type"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	// geminiCut is geminiError in the order of docs/protocol.md, section 3, which is bytes for ever.
	geminiCut struct {
		Error geminiCutDetail `json:"error"`
	}
	geminiCutDetail struct {
		Code    int    `json:"code"`
		Status  string `json:"status"`
		Message string `json:"message"`
	}
)

// Heartbeat returns what may be sent between two chunks to keep a quiet connection open, or nil
// where nothing is safe: docs/protocol.md, section 4. It is half an SSE block, so that parsers which
// stumble over comment-only blocks see it as part of the next event.
func Heartbeat(d Dialect, k frame.Kind) []byte {
	if k != frame.SSE {
		return nil
	}
	switch d {
	case OpenAIChat, OpenAIResponses, Anthropic:
		return []byte(": hb\n")
	}
	return nil
}

// Closing is what is missing of a chunk's end, so that another event can follow it: some providers
// leave the blank line out after their last event. It is empty after a chunk that is finished.
func Closing(k frame.Kind, last []byte) []byte {
	ended := bytes.HasSuffix(last, []byte("\n")) || bytes.HasSuffix(last, []byte("\r"))
	switch {
	case k == frame.NDJSON && !ended:
		return []byte("\n")
	case k != frame.SSE:
		return nil
	case !ended:
		return []byte("\n\n")
	}
	for _, blank := range []string{"\n\n", "\r\n\r\n", "\r\r", "\n\r\n", "\r\n\n", "\n\r", "\r\n\r"} {
		if bytes.HasSuffix(last, []byte(blank)) {
			return nil
		}
	}
	return []byte("\n")
}
