package provider

import (
	"encoding/json"
	"net/http"
)

// Error is an answer of the buffer's own on a provider's route.
type Error struct {
	Status  int
	Code    string // the contract's word for it (docs/protocol.md, section 6)
	Message string
	Type    string // in the dialect's own words; empty: the dialect's word for Status
}

// ErrorBody returns e as JSON in the shape of dialect d's own errors, with the code in it, so that
// an SDK raises what it usually raises. The same error is always the same bytes.
func ErrorBody(d Dialect, e Error) []byte {
	kind := e.Type
	if kind == "" {
		kind = errorType(d, e.Status)
	}
	switch d {
	case Anthropic:
		return encode(anthropicError{Type: "error", Error: anthropicDetail{Type: kind, Message: e.Message, Code: e.Code}})
	case Gemini:
		body := geminiError{geminiDetail{Code: e.Status, Message: e.Message, Status: kind}}
		if e.Code != "" {
			body.Error.Details = []geminiInfo{{Type: "type.googleapis.com/google.rpc.ErrorInfo", Reason: e.Code, Domain: "spool"}}
		}
		return encode(body)
	case Bedrock, BedrockInvoke:
		// A field called code would be taken for the exception's type.
		return encode(bedrockError{Type: kind, Message: prefixed(e)})
	case Ollama:
		return encode(ollamaError{Error: prefixed(e)})
	}
	return encode(openAIError{openAIDetail{Message: e.Message, Type: kind, Code: e.Code}})
}

// prefixed puts the code into the text, for shapes that have no other place for it.
func prefixed(e Error) string {
	if e.Code == "" {
		return e.Message
	}
	return e.Code + ": " + e.Message
}

type (
	openAIError struct {
		Error openAIDetail `json:"error"`
	}
	openAIDetail struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Code    string  `json:"code"`
		Param   *string `json:"param"`
	}
	anthropicError struct {
		Type  string          `json:"type"`
		Error anthropicDetail `json:"error"`
	}
	anthropicDetail struct {
		Type    string `json:"type"`
		Message string `json:"message"`
		Code    string `json:"code,omitempty"`
	}
	geminiError struct {
		Error geminiDetail `json:"error"`
	}
	geminiDetail struct {
		Code    int          `json:"code"`
		Message string       `json:"message"`
		Status  string       `json:"status"`
		Details []geminiInfo `json:"details,omitempty"`
	}
	geminiInfo struct {
		Type   string `json:"@type"`
		Reason string `json:"reason"`
		Domain string `json:"domain"`
	}
	bedrockError struct {
		Type    string `json:"__type,omitempty"`
		Message string `json:"message"`
	}
	ollamaError struct {
		Error string `json:"error"`
	}
)

// errorType is a dialect's word for a status.
func errorType(d Dialect, status int) string {
	switch d {
	case Anthropic:
		return word(status, anthropicTypes, "invalid_request_error", "api_error")
	case Gemini:
		return word(status, geminiTypes, "INVALID_ARGUMENT", "INTERNAL")
	case Bedrock, BedrockInvoke:
		return word(status, bedrockTypes, "ValidationException", "InternalServerException")
	}
	return word(status, openAITypes, "invalid_request_error", "server_error")
}

func word(status int, words map[int]string, client, server string) string {
	if w, ok := words[status]; ok {
		return w
	}
	if status >= http.StatusInternalServerError {
		return server
	}
	return client
}

// The dialects' words for a status; other statuses take the word of their hundred.
var (
	openAITypes = map[int]string{
		401: "authentication_error", 403: "permission_error", 429: "rate_limit_error",
	}
	anthropicTypes = map[int]string{
		401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large",
		429: "rate_limit_error", 503: "overloaded_error", 504: "timeout_error", 529: "overloaded_error",
	}
	geminiTypes = map[int]string{
		401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED", 410: "NOT_FOUND",
		416: "OUT_OF_RANGE", 429: "RESOURCE_EXHAUSTED", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
	}
	bedrockTypes = map[int]string{
		401: "AccessDeniedException", 403: "AccessDeniedException", 404: "ResourceNotFoundException", 409: "ConflictException",
		410: "ResourceNotFoundException", 429: "ThrottlingException", 503: "ServiceUnavailableException", 504: "ModelTimeoutException",
	}
)

// encode is v as JSON. The types that it is given cannot fail to encode.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a type of this package that is no JSON
	}
	return b
}

// quote is encode for the readers, which work on strings.
func quote(v any) string { return view(encode(v)) }
