package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/openai/openai-go/v3"
	community "github.com/sashabaranov/go-openai"
	"google.golang.org/genai"
)

// A client reads the answer to one job to its end, over the given HTTP client.
type client func(context.Context, job, *http.Client, *reading) error

var clients = map[string]client{
	"openai-go-chat":      openaiChat,
	"openai-go-responses": openaiResponses,
	"openai-go-retrieve":  openaiRetrieve,
	"anthropic-go":        anthropicMessages,
	"genai-go":            genaiContent,
	"go-openai":           communityChat,
}

// A reading is what a client has seen of one stream, up to its end or an error.
type reading struct {
	Events int    `json:"events"`
	Text   string `json:"text"`
	Tools  string `json:"tools"`
	Finish string `json:"finish"`
}

// add counts one event. An empty finish leaves the one that was seen before.
func (r *reading) add(text, tools, finish string) {
	r.Events++
	r.Text += text
	r.Tools += tools
	if finish != "" {
		r.Finish = finish
	}
}

// describe names the type of the error that an SDK raised, and the status in it.
func describe(err error) (name string, status int) {
	if e, ok := errors.AsType[*openai.Error](err); ok {
		return "openai.Error", e.StatusCode
	}
	if e, ok := errors.AsType[*anthropic.Error](err); ok {
		return "anthropic.Error", e.StatusCode
	}
	if e, ok := errors.AsType[genai.APIError](err); ok {
		return "genai.APIError", e.Code
	}
	if e, ok := errors.AsType[*community.APIError](err); ok {
		return "go-openai.APIError", e.HTTPStatusCode
	}
	if e, ok := errors.AsType[*community.RequestError](err); ok {
		return "go-openai.RequestError", e.HTTPStatusCode
	}
	return fmt.Sprintf("%T", err), 0
}
