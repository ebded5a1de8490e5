package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spool-dev/spool/api/client"
)

// message is one of a chat completion's.
type message struct {
	Role       string     `json:"role"`
	Content    string     `json:"content"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type toolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

const tools = `[{"type":"function","function":{"name":"book","description":"Books something.",` +
	`"parameters":{"type":"object","properties":{"what":{"type":"string"}},"required":["what"]}}}]`

// ask makes the call that the context's key names. Made again after a crash, it has the same body, and
// is answered from the log.
func (a *agent) ask(ctx context.Context) (message, error) {
	body, err := json.Marshal(map[string]any{
		"model": a.model, "stream": true, "messages": a.state.Messages, "tools": json.RawMessage(tools),
	})
	if err != nil {
		return message{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base+"/openai/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return message{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Buffer-Operation", a.state.Operation)
	if a.credential != "" {
		req.Header.Set("Authorization", "Bearer "+a.credential)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return message{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // for people
		return message{}, fmt.Errorf("%s: %s", resp.Status, text)
	}
	return read(resp.Body)
}

// prefix is what Spool has stored of a run that was interrupted.
func (a *agent) prefix(ctx context.Context, run string) (message, error) {
	spool := &client.Client{BaseURL: a.base, Credential: a.credential}
	stored, err := spool.Resume(ctx, run, 0)
	if err != nil {
		return message{}, err
	}
	defer stored.Close()
	m, err := read(stored)
	if _, ok := errors.AsType[*client.InterruptedError](err); ok {
		err = nil // it comes after all that is stored, and after nothing less
	}
	return m, err
}

// read puts the deltas of a stream together. Where it breaks, what came before is returned with the error.
func read(stream io.Reader) (message, error) {
	m := message{Role: "assistant"}
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok || string(data) == "[DONE]" {
			continue
		}
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content   string
					ToolCalls []struct {
						Index int
						toolCall
					} `json:"tool_calls"`
				}
			}
		}
		if err := json.Unmarshal(data, &chunk); err != nil {
			return m, err
		}
		if len(chunk.Choices) == 0 {
			continue
		}
		m.Content += chunk.Choices[0].Delta.Content
		for _, t := range chunk.Choices[0].Delta.ToolCalls {
			if t.Index == len(m.ToolCalls) {
				m.ToolCalls = append(m.ToolCalls, toolCall{ID: t.ID, Type: "function", Function: function{Name: t.Function.Name}})
			}
			if t.Index < 0 || t.Index >= len(m.ToolCalls) {
				return m, fmt.Errorf("a part of tool call %d before its beginning", t.Index)
			}
			m.ToolCalls[t.Index].Function.Arguments += t.Function.Arguments
		}
	}
	return m, lines.Err()
}
