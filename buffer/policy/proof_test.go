package policy_test

import (
	"bytes"
	"testing"

	"github.com/spool-dev/spool/buffer/frame"
	"github.com/spool-dev/spool/buffer/policy"
	"github.com/spool-dev/spool/buffer/provider"
)

// ending is what the service's own reader finds in an answer.
type ending struct {
	final   bool   // proof that nothing can take back
	proven  bool   // proof, if the body ends here
	failure []byte // the chunk that holds the provider's error
	tool    bool
	refused bool // the proof is a refusal's
}

// readEnding reads an answer as the drain does: cut into chunks, then read in its dialect.
func readEnding(t *testing.T, d provider.Dialect, e policy.Evidence) ending {
	t.Helper()
	kind := frame.Detect(e.Header.Get("Content-Type"), true)
	scanner, reader := frame.NewScanner(bytes.NewReader(e.Body), kind, 0), provider.NewReader(d, kind, true)
	var end ending
	for {
		chunk, err := scanner.Next()
		if err != nil {
			break // of a body in memory: its end, or a message that is cut off
		}
		end.final = reader.Read(chunk).Final || end.final
	}
	clean := e.Transport == policy.EOFClean || e.Transport == policy.NoFault
	v := reader.Verdict(clean)
	end.proven, end.failure, end.tool = v.Proven, v.FailureChunk, v.ToolStarted
	end.refused = v.Refused
	return end
}

// dialect is the protocol that a vector's provider speaks.
func dialect(name string) provider.Dialect {
	switch name {
	case "openai_responses":
		return provider.OpenAIResponses
	case "anthropic":
		return provider.Anthropic
	case "gemini", "vertex":
		return provider.Gemini
	case "bedrock":
		return provider.Bedrock
	case "bedrock_invoke":
		return provider.BedrockInvoke
	case "ollama":
		return provider.Ollama
	case "generic":
		return provider.Generic
	}
	return provider.OpenAIChat
}
