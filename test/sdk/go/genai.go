package main

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"google.golang.org/genai"
)

func genaiContent(ctx context.Context, j job, over *http.Client, seen *reading) error {
	client, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey:      "k",
		Backend:     genai.BackendGeminiAPI,
		HTTPClient:  over,
		HTTPOptions: genai.HTTPOptions{BaseURL: j.Base},
	})
	if err != nil {
		return err
	}
	model := cmp.Or(j.Model, "gemini-2.5-flash")
	for chunk, err := range client.Models.GenerateContentStream(ctx, model, genai.Text(j.Prompt), nil) {
		if err != nil {
			return err
		}
		var tools, finish string
		for _, call := range chunk.FunctionCalls() {
			input, err := json.Marshal(call.Args)
			if err != nil {
				return err
			}
			tools += call.Name + string(input)
		}
		for _, candidate := range chunk.Candidates {
			finish = string(candidate.FinishReason)
		}
		seen.add(chunk.Text(), tools, finish)
	}
	return nil
}
