// Command agent-go is an agent that may be killed at any moment: start it again with the same state
// file, and it goes on. What was bought once is not bought again, and what a tool did is not done again.
//
//	spool serve &
//	go run ./examples/agent-go --base http://127.0.0.1:8787 --state agent.json
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/spool-dev/spool/api/client"
)

// limit is how many calls a turn may take, and how often one of them may be bought in parts.
const limit = 10

func main() {
	base := flag.String("base", "http://127.0.0.1:8787", "base URL of Spool")
	path := flag.String("state", "agent.json", "where the agent's state is kept")
	effects := flag.String("ledger", "ledger.txt", "where the tools keep what they did")
	model := flag.String("model", "gpt-5-mini", "the model that is asked")
	prompt := flag.String("prompt", "Book a flight and a hotel in Lisbon.", "what the user wants")
	flag.Parse()

	s, err := load(*path, *prompt)
	if err != nil {
		log.Fatal(err)
	}
	a := agent{
		base: *base, model: *model, credential: os.Getenv("OPENAI_API_KEY"), state: s, ledger: ledger{*effects},
		http: &http.Client{Transport: &client.Transport{BaseURL: *base}},
	}
	if err := a.turn(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Messages[len(s.Messages)-1].Content)
}

// agent plays one turn of a chat: it asks the model, runs the tools that the answer wants, and asks
// again until an answer wants none.
type agent struct {
	base, model, credential string
	http                    *http.Client
	state                   *state
	ledger                  ledger
}

// turn goes on from the state. A crash before a save leaves the state of the step before: the call is
// made again with its key, and is the same run; the tools run again with theirs, and do nothing.
func (a *agent) turn(ctx context.Context) error {
	s := a.state
	for !s.Done {
		if s.Step > limit || s.Part > limit {
			return fmt.Errorf("no end after %d calls", limit)
		}
		answer, err := a.ask(client.WithKey(ctx, s.key()))
		if broken, ok := errors.AsType[*client.InterruptedError](err); ok && broken.State == "interrupted" {
			if err := a.takePrefix(ctx, broken.Run); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		s.Messages = append(s.Messages, answer)
		for _, call := range answer.ToolCalls {
			result, err := a.ledger.do(s.Operation+":"+call.ID, call.Function.Name+" "+call.Function.Arguments)
			if err != nil {
				return err
			}
			s.Messages = append(s.Messages, message{Role: "tool", ToolCallID: call.ID, Content: result})
		}
		s.Done = len(answer.ToolCalls) == 0
		s.Step, s.Part = s.Step+1, 1
		if err := s.save(); err != nil {
			return err
		}
	}
	return nil
}

// takePrefix makes what is stored of a run that will never end a partial answer of the model's, and lets
// the turn go on from there with another call. Of a tool call nothing is taken: half of one is none.
func (a *agent) takePrefix(ctx context.Context, run string) error {
	partial, err := a.prefix(ctx, run)
	if err != nil {
		return err
	}
	if partial.Content != "" {
		a.state.Messages = append(a.state.Messages, message{Role: "assistant", Content: partial.Content})
	}
	a.state.Part++
	return a.state.save()
}
