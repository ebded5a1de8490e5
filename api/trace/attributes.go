package trace

import (
	"cmp"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"

	"github.com/spool-dev/spool/buffer"
	"github.com/spool-dev/spool/buffer/policy"
	"github.com/spool-dev/spool/buffer/provider"
)

// The attributes that have no name among OpenTelemetry's conventions. They are documented in
// docs/operations.md.
const (
	keyRun       = "spool.run.id"
	keyOperation = "spool.operation"
	keyRoute     = "spool.route"
	keyStream    = "spool.stream"
	keyState     = "spool.state"
	keyReason    = "spool.reason"
	keyChunks    = "spool.chunks"
	keyBytes     = "spool.bytes"
	keySends     = "spool.sends"
	keyAttempt   = "spool.attempt"
	keyClass     = "spool.attempt.class"
	keyAction    = "spool.attempt.action"
	keyBilled    = "spool.attempt.billed"
	keyCaller    = "spool.reader.caller"

	keySystem = "gen_ai.system" // what gen_ai.provider.name was called before; dashboards still ask for it
)

// providers are the conventions' words for the built-in providers that are called otherwise here.
var providers = map[string]string{"gemini": "gcp.gemini", "bedrock": "aws.bedrock"}

// operation is the conventions' word for what a call does.
func operation(r buffer.Run) string {
	path, _, _ := strings.Cut(r.Path, "?")
	switch {
	case r.Dialect == provider.Gemini:
		return "generate_content"
	case strings.HasSuffix(path, "/completions") && !strings.HasSuffix(path, "/chat/completions"):
		return "text_completion"
	}
	return "chat"
}

// spanName is the conventions' name of a call to a model: what it does, and the model.
func spanName(r buffer.Run) string { return strings.TrimSpace(operation(r) + " " + r.Model) }

// called is what a run and each of its attempts have in common.
func called(r buffer.Run, model string) []attribute.KeyValue {
	name := cmp.Or(providers[r.Provider], r.Provider)
	all := []attribute.KeyValue{
		attribute.String(keyRun, r.ID.String()), attribute.String(keySystem, name),
		semconv.GenAIProviderNameKey.String(name), semconv.GenAIOperationNameKey.String(operation(r)),
	}
	return texts(all, string(semconv.GenAIRequestModelKey), model, keyOperation, r.Operation)
}

// began is what is known of a run when it begins.
func began(r buffer.Run) []attribute.KeyValue {
	return append(called(r, r.Model), attribute.String(keyRoute, r.Route), attribute.Bool(keyStream, r.Stream))
}

// ended is what its end adds.
func ended(r buffer.Run) []attribute.KeyValue {
	all := []attribute.KeyValue{
		attribute.String(keyState, string(r.Outcome)), attribute.Int64(keyChunks, r.Head),
		attribute.Int64(keyBytes, r.Bytes), attribute.Int(keySends, len(r.Attempts)),
	}
	all = append(all, used(r.Usage)...)
	all = append(all, status(r.Status)...)
	failure := ""
	if r.Outcome != buffer.Completed {
		failure = cmp.Or(string(r.Reason), string(r.Outcome))
	}
	return texts(all, string(semconv.GenAIResponseIDKey), r.ProviderID, keyReason, string(r.Reason), string(semconv.ErrorTypeKey), failure)
}

// attempted is one row of the ledger.
func attempted(r buffer.Run, a buffer.Attempt) []attribute.KeyValue {
	all := append(called(r, a.Model), attribute.Int(keyAttempt, a.N), attribute.String(keyRoute, a.Route))
	all = append(all, used(a.Usage)...)
	all = append(all, status(a.Status)...)
	failure := ""
	if !goodAttempt(a) {
		failure = string(a.Class)
	}
	return texts(all, keyClass, string(a.Class), keyAction, string(a.Action), keyBilled, string(a.Billed),
		string(semconv.ErrorTypeKey), failure)
}

// goodAttempt reports whether the attempt's answer is whole.
func goodAttempt(a buffer.Attempt) bool { return a.Action == policy.Complete }

func used(u *provider.Usage) []attribute.KeyValue {
	if u == nil {
		return nil
	}
	return []attribute.KeyValue{
		semconv.GenAIUsageInputTokensKey.Int64(u.InputTokens), semconv.GenAIUsageOutputTokensKey.Int64(u.OutputTokens),
	}
}

func status(code int) []attribute.KeyValue {
	if code == 0 {
		return nil
	}
	return []attribute.KeyValue{semconv.HTTPResponseStatusCodeKey.Int(code)}
}

// texts adds those of the pairs that say something.
func texts(all []attribute.KeyValue, pairs ...string) []attribute.KeyValue {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			all = append(all, attribute.String(pairs[i], pairs[i+1]))
		}
	}
	return all
}
