package main

import (
	"cmp"
	"context"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

func openaiClient(j job, over *http.Client) openai.Client {
	return openai.NewClient(
		option.WithAPIKey("k"),
		option.WithBaseURL(j.Base+"/v1"),
		option.WithHTTPClient(over),
		option.WithMaxRetries(j.Retries),
	)
}

func openaiChat(ctx context.Context, j job, over *http.Client, seen *reading) error {
	client := openaiClient(j, over)
	stream := client.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{
		Model:    cmp.Or(j.Model, "lab"),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(j.Prompt)},
	})
	for stream.Next() {
		var text, tools, finish string
		for _, choice := range stream.Current().Choices {
			text += choice.Delta.Content
			finish = choice.FinishReason
			for _, call := range choice.Delta.ToolCalls {
				tools += call.Function.Name + call.Function.Arguments
			}
		}
		seen.add(text, tools, finish)
	}
	return stream.Err()
}

func openaiResponses(ctx context.Context, j job, over *http.Client, seen *reading) error {
	client := openaiClient(j, over)
	stream := client.Responses.NewStreaming(ctx, question(j))
	for stream.Next() {
		addResponsesEvent(seen, stream.Current())
	}
	return stream.Err()
}

// openaiRetrieve reads as openaiResponses does and, where the stream breaks, goes on after the last
// event that came.
func openaiRetrieve(ctx context.Context, j job, over *http.Client, seen *reading) error {
	client := openaiClient(j, over)
	stream := client.Responses.NewStreaming(ctx, question(j))
	var id string
	var last int64
	for stream.Next() {
		event := stream.Current()
		id, last = cmp.Or(id, event.Response.ID), event.SequenceNumber
		addResponsesEvent(seen, event)
	}
	if stream.Err() == nil || id == "" {
		return stream.Err()
	}
	stream = client.Responses.GetStreaming(ctx, id, responses.ResponseGetParams{StartingAfter: openai.Int(last)})
	for stream.Next() {
		addResponsesEvent(seen, stream.Current())
	}
	return stream.Err()
}

func question(j job) responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: cmp.Or(j.Model, "lab"),
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(j.Prompt)},
	}
}

func addResponsesEvent(seen *reading, event responses.ResponseStreamEventUnion) {
	switch event.Type {
	case "response.output_text.delta":
		seen.add(event.Delta, "", "")
	case "response.output_item.added":
		seen.add("", event.Item.Name, "")
	case "response.function_call_arguments.delta":
		seen.add("", event.Delta, "")
	case "response.completed", "response.incomplete":
		seen.add("", "", string(event.Response.Status))
	default:
		seen.add("", "", "")
	}
}
