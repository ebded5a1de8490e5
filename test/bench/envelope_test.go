package main

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestEnvelope_GivesTheStreamAsItWasAppended(t *testing.T) {
	const wrapped = "event: data\ndata:data: {\"i\":1}\ndata:\ndata:\n\n" +
		"event: control\ndata:{\"streamNextOffset\":\"0_105\"}\n\n" +
		"event: data\ndata:data: {\"i\":2}\ndata:\ndata:data: [DONE]\ndata:\ndata:\n\n" +
		"event: control\ndata:{\"streamClosed\":true}\n\n"
	const want = "data: {\"i\":1}\n\ndata: {\"i\":2}\n\ndata: [DONE]\n\n"
	for name, body := range map[string]io.Reader{
		"at once": strings.NewReader(wrapped), "a byte at a time": iotest.OneByteReader(strings.NewReader(wrapped)),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := io.ReadAll(openEnvelope(io.NopCloser(body)))
			if err != nil || string(got) != want {
				t.Errorf("got %q %v", got, err)
			}
		})
	}
}

func TestEnvelope_TellsThatItsServerBrokeOff(t *testing.T) {
	broken := io.MultiReader(strings.NewReader("event: data\ndata:data: {\"i\":1}\n"), iotest.ErrReader(io.ErrUnexpectedEOF))
	got, err := io.ReadAll(openEnvelope(io.NopCloser(broken)))
	if err != io.ErrUnexpectedEOF || string(got) != "data: {\"i\":1}" {
		t.Errorf("got %q %v", got, err)
	}
}
