package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"

	community "github.com/sashabaranov/go-openai"
)

// communityChat reads with go-openai, the SDK that came before the official one.
func communityChat(ctx context.Context, j job, over *http.Client, seen *reading) error {
	config := community.DefaultConfig("k")
	config.BaseURL = j.Base + "/v1"
	config.HTTPClient = over
	stream, err := community.NewClientWithConfig(config).CreateChatCompletionStream(ctx, community.ChatCompletionRequest{
		Model:    cmp.Or(j.Model, "lab"),
		Stream:   true,
		Messages: []community.ChatCompletionMessage{{Role: "user", Content: j.Prompt}},
	})
	if err != nil {
		return err
	}
	defer stream.Close()
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var text, tools, finish string
		for _, choice := range chunk.Choices {
			text += choice.Delta.Content
			finish = string(choice.FinishReason)
			for _, call := range choice.Delta.ToolCalls {
				tools += call.Function.Name + call.Function.Arguments
			}
		}
		seen.add(text, tools, finish)
	}
}
