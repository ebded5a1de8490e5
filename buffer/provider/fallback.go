package provider

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// Fallback is a route that the configuration approves for another one, and what it keeps of a call.
type Fallback struct {
	Route    *Route
	Models   map[string]string // the primary's model to this route's; a model that is not named has none
	Tools    bool              // it can call tools as the primary does
	Schema   bool              // it keeps to a schema for its output
	Context  int64             // tokens that fit into it; 0 is as many as into the primary
	OwnQuota bool              // its quota is not the primary's
}

// Price is what a route takes, in US dollars for a million tokens.
type Price struct {
	Input  float64
	Output float64
}

// Needs is what a call asks of whoever answers it.
type Needs struct {
	Tools        bool
	Schema       bool
	InputTokens  int64 // an estimate
	OutputTokens int64 // the most that it allows, or a guess
}

const (
	bytesPerToken = 4    // of a request's body, roughly
	guessedOutput = 1024 // tokens, where the call sets no limit
)

// NeedsOf reads what a call of dialect d needs.
func NeedsOf(d Dialect, body []byte) Needs {
	get := func(path string) gjson.Result { return gjson.GetBytes(body, path) }
	n := Needs{InputTokens: int64(len(body)) / bytesPerToken, OutputTokens: guessedOutput}
	for _, path := range []string{"tools", "functions", "toolConfig.tools"} {
		n.Tools = n.Tools || len(get(path).Array()) > 0
	}
	for _, path := range []string{"response_format.json_schema", "text.format.schema", "output_format.schema", "output_config.format.schema", "generationConfig.responseSchema", "generationConfig.responseJsonSchema", "generation_config.response_schema"} {
		n.Schema = n.Schema || get(path).Exists()
	}
	if d == Ollama {
		n.Schema = n.Schema || get("format").IsObject()
	}
	for _, path := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens", "generationConfig.maxOutputTokens", "inferenceConfig.maxTokens", "options.num_predict"} {
		if v := get(path); v.Type == gjson.Number && v.Int() > 0 {
			n.OutputTokens = v.Int()
		}
	}
	return n
}

// Cost is an upper estimate of what an answer to a call costs, in US dollars.
func (p Price) Cost(n Needs) float64 {
	return p.Of(Usage{InputTokens: n.InputTokens, OutputTokens: n.OutputTokens})
}

// Of is what an answer with these figures has cost, in US dollars; 0 where the price is not known.
func (p Price) Of(u Usage) float64 {
	return (float64(u.InputTokens)*p.Input + float64(u.OutputTokens)*p.Output) / 1e6
}

// Keeps reports whether the fallback can serve a call that from was asked for, and why not.
func (f Fallback) Keeps(from Route, model string, n Needs) (ok bool, why string) {
	switch {
	case f.Models[model] == "":
		return false, "it has no model for " + model
	case from.Region != "" && f.Route.Region != from.Region:
		return false, "it is in another data region"
	case n.Tools && !f.Tools:
		return false, "it does not keep tools"
	case n.Schema && !f.Schema:
		return false, "it does not keep the output's schema"
	case f.Context > 0 && n.InputTokens+n.OutputTokens > f.Context:
		return false, "the call does not fit into its context"
	}
	return true, ""
}

// Redirect is the same call for another route: the same body with the model mapped, in the same
// dialect. The caller's credential was for the other provider and stays behind.
func (s Send) Redirect(from, to Route, d Dialect, model string) (Send, error) {
	u := *to.BaseURL
	rest := strings.TrimPrefix(s.URL.EscapedPath(), strings.TrimSuffix(from.BaseURL.EscapedPath(), "/"))
	body := s.Body
	switch d {
	case Gemini, Bedrock, BedrockInvoke: // the path names the model
		rest = strings.Replace(rest, url.PathEscape(Model(d, s.URL.Path, nil)), url.PathEscape(model), 1)
	default:
		var err error
		if body, err = sjson.SetBytes(body, "model", model); err != nil {
			return s, err
		}
	}
	raw := strings.TrimSuffix(to.BaseURL.EscapedPath(), "/") + rest
	plain, err := url.PathUnescape(raw)
	if err != nil {
		return s, err
	}
	u.Path, u.RawPath, u.RawQuery = plain, raw, WithoutKey(s.URL.RawQuery)
	h := carried(s.Header)
	if to.Key != "" {
		Authorize(h, d, to.Key)
	}
	return Send{Method: s.Method, URL: &u, Header: h, Body: body}, nil
}

// protocolHeaders are what of a call's headers another provider of the same dialect needs. Nothing
// else goes there: credentials have too many names to be left out one by one.
var protocolHeaders = []string{
	"Accept", "Accept-Encoding", "Accept-Language", "Content-Type", "User-Agent", "X-Goog-Api-Client",
	"Anthropic-Version", "Anthropic-Beta", "Openai-Beta", "X-Amzn-Bedrock-Accept",
}

func carried(in http.Header) http.Header {
	out := http.Header{}
	for _, name := range protocolHeaders {
		if v, ok := in[name]; ok {
			out[name] = v
		}
	}
	for name, v := range in {
		if strings.HasPrefix(name, "X-Stainless-") {
			out[name] = v
		}
	}
	return out
}
