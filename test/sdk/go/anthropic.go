package main

import (
	"cmp"
	"context"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

func anthropicMessages(ctx context.Context, j job, over *http.Client, seen *reading) error {
	client := anthropic.NewClient(
		option.WithAPIKey("k"),
		option.WithBaseURL(j.Base),
		option.WithHTTPClient(over),
		option.WithMaxRetries(j.Retries),
	)
	stream := client.Messages.NewStreaming(ctx, anthropic.MessageNewParams{
		Model:     cmp.Or(j.Model, "lab"),
		MaxTokens: 64,
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(j.Prompt))},
	})
	for stream.Next() {
		switch event := stream.Current(); event.Type {
		case "content_block_start":
			seen.add("", event.ContentBlock.Name, "")
		case "content_block_delta":
			seen.add(event.Delta.Text, event.Delta.PartialJSON, "")
		case "message_delta":
			seen.add("", "", string(event.Delta.StopReason))
		default:
			seen.add("", "", "")
		}
	}
	return stream.Err()
}
