package policy

import (
	"net/http"
	"testing"
)

// answer is an attempt that was sent and answered.
func answer(status int, body string, header ...string) Evidence {
	e := Evidence{Status: status, Body: []byte(body), Header: make(http.Header), Transport: NoFault, RequestSent: true}
	for i := 0; i+1 < len(header); i += 2 {
		e.Header.Set(header[i], header[i+1])
	}
	return e
}

func TestClassify_Order(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   Class
	}{
		{"policy beats 403", 403, `{"error":{"code":"content_filter"}}`, Policy},
		{"policy in the inner error beats a vague code", 400, `{"error":{"code":"BadRequest","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, Policy},
		{"quota beats 429", 429, `{"error":{"type":"insufficient_quota","code":"insufficient_quota"}}`, Quota},
		{"quota beats 403", 403, `{"error":{"type":"billing_error"}}`, Quota},
		{"402 beats a rate code", 402, `{"error":{"code":"rate_limit_exceeded"}}`, Quota},
		{"401 beats a type", 401, `{"error":{"type":"invalid_request_error"}}`, Auth},
		{"403 beats a rate code", 403, `{"error":{"code":"rate_limit_exceeded"}}`, Auth},
		{"a code beats a type", 200, `{"error":{"code":"request_timeout","type":"invalid_request_error"}}`, Transient},
		{"an unknown code leaves it to the type", 500, `{"error":{"code":"xyz","type":"server_error"}}`, Transient},
		{"a type beats a status", 503, `{"error":{"type":"invalid_request_error"}}`, Request},
		{"a status in the body beats the status", 500, `{"error":{"code":429,"message":"x"}}`, Rate},
		{"detail beats text", 429, `{"error":{"status":"RESOURCE_EXHAUSTED","message":"quota for today","details":[{"violations":[{"quotaId":"XPerMinuteY"}]}]}}`, Rate},
		{"a day's quota beats RetryInfo", 429, `{"error":{"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"3s"},{"metadata":{"quota_limit":"GenerateContentPerDay"}}]}}`, Quota},
		{"a key's detail beats a vague status", 400, `{"error":{"code":400,"status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`, Auth},
		{"text about the key, where the word is vague", 400, `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"API key not valid. Please pass a valid API key."}}`, Auth},
		{"text about the key, where the code is clear", 400, `{"error":{"code":"context_length_exceeded","message":"invalid api key"}}`, Request},
		{"text about money, at another status", 500, `{"error":{"message":"credit balance is too low"}}`, Unknown},
		{"429 that speaks of capacity", 429, `{"message":"Service tier capacity exceeded","type":"service_tier_capacity_exceeded","code":"3505"}`, Transient},
		{"429 with a code that speaks of capacity", 429, `{"error":{"code":"rate_limit_exceeded","message":"over capacity"}}`, Rate},
		{"limit source in flight beats 402", 402, `{"error":{"code":402,"metadata":{"limit_source":"openrouter_in_flight_budget"}}}`, Rate},
		{"500 with a text only", 500, `{"error":{"message":"oops"}}`, Unknown},
		{"500 with an unknown type", 500, `{"error":{"type":"weird"}}`, Unknown},
		{"an error in words only", 200, `{"error":"boom"}`, Unknown},
		{"an error that is a word", 200, `{"error":"overloaded","message":"later"}`, Transient},
		{"a word beside the text", 503, `{"error":"Model is overloaded","error_type":"overloaded"}`, Transient},
		{"another spelling", 200, `{"object":"error","message":"x","type":"BadRequestError","code":400}`, Request},
		{"flat, with a namespace", 400, `{"__type":"com.amazon.coral.service#ThrottlingException","message":"x"}`, Rate},
		{"empty error", 500, `{"error":{}}`, Unknown},
		{"truncated error", 500, `{"error":{"type":"server_error","mess`, Transient},
	} {
		t.Run(c.name, func(t *testing.T) {
			if v := Classify(answer(c.status, c.body)); v.Class != c.want {
				t.Errorf("class %q, want %q: %+v", v.Class, c.want, v)
			}
		})
	}
}

func TestClassify_StatusAlone(t *testing.T) {
	for class, statuses := range map[Class][]int{
		Auth:      {401, 403},
		Quota:     {402},
		Rate:      {429},
		Transient: {408, 409, 425, 502, 503, 504, 520, 521, 522, 523, 524, 525, 526, 527, 529},
		Request:   {400, 404, 405, 410, 413, 415, 422},
		Unknown:   {101, 199, 301, 307, 418, 451, 500, 501, 505, 530},
	} {
		for _, status := range statuses {
			if v := Classify(answer(status, "")); v.Class != class {
				t.Errorf("%d: class %q, want %q", status, v.Class, class)
			}
		}
	}
}

func TestClassify_Sent(t *testing.T) {
	inBand := func(code string) Evidence { return answer(200, `{"error":{"code":"`+code+`"}}`) }
	delivered := inBand("rate_limit_exceeded")
	delivered.Delivered = true
	tool := answer(429, "")
	tool.ToolStarted = true
	for _, c := range []struct {
		name string
		e    Evidence
		want Sent
	}{
		{"never written", Evidence{Transport: Reset}, NotSent},
		{"dns", Evidence{Transport: DNSError}, NotSent},
		{"refused stream", Evidence{Transport: RefusedStream, RequestSent: true}, NotSent},
		{"our own limit", Evidence{Transport: LocalLimit}, NotSent},
		{"written, no answer", Evidence{Transport: Reset, RequestSent: true}, SentUnknown},
		{"silent", Evidence{Transport: HeaderTimeout, RequestSent: true}, SentUnknown},
		{"101", answer(101, ""), SentUnknown},
		{"301", answer(301, ""), WasRefused},
		{"400", answer(400, ""), WasRefused},
		{"408", answer(408, ""), SentUnknown},
		{"409", answer(409, ""), WasRefused},
		{"429", answer(429, ""), WasRefused},
		{"429 after a hosted tool", tool, SentUnknown},
		{"500", answer(500, ""), SentUnknown},
		{"502", answer(502, ""), SentUnknown},
		{"503", answer(503, ""), WasRefused},
		{"504", answer(504, ""), SentUnknown},
		{"521", answer(521, ""), NotSent},
		{"524", answer(524, ""), SentUnknown},
		{"529", answer(529, ""), WasRefused},
		{"stream that died", Evidence{Status: 200, Transport: EOFUnexpected, RequestSent: true}, SentUnknown},
		{"rate in band", inBand("rate_limit_exceeded"), WasRefused},
		{"rate in band after content", delivered, SentUnknown},
		{"request in band", inBand("invalid_request_error"), WasRefused},
		{"transient in band", inBand("server_error"), SentUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			if v := Classify(c.e); v.Sent != c.want {
				t.Errorf("sent %q, want %q: %+v", v.Sent, c.want, v)
			}
		})
	}
}

func TestClassify_ShouldRetry(t *testing.T) {
	if v := Classify(answer(500, "", "x-should-retry", "true")); v.Class != Transient || v.NoRetry {
		t.Errorf("true does not lift unknown: %+v", v)
	}
	if v := Classify(answer(400, "", "x-should-retry", "true")); v.Class != Request {
		t.Errorf("true lifts more than unknown: %+v", v)
	}
	if v := Classify(answer(503, "", "x-should-retry", "false")); v.Class != Transient || !v.NoRetry {
		t.Errorf("false does not forbid: %+v", v)
	}
}

func TestClassify_Alive(t *testing.T) {
	for _, transport := range []Transport{Open, ClientGone} {
		for _, status := range []int{0, 200} {
			v := Classify(Evidence{Status: status, Transport: transport, RequestSent: true})
			if v.Class != None || !v.Alive() || v.CountsAgainstRoute() {
				t.Errorf("%s, status %d: %+v", transport, status, v)
			}
		}
	}
}

func TestClassify_Proven(t *testing.T) {
	e := answer(200, `data: {"error":{"code":"server_error"}}`+"\n\n")
	e.Proven, e.Transport = true, EOFUnexpected
	if v := Classify(e); v.Class != None {
		t.Errorf("class %q of an answer that proved its end", v.Class)
	}
	e.Refused = true
	if v := Classify(e); v.Class != Policy {
		t.Errorf("class %q of a refusal", v.Class)
	}
	e.Proven = false
	if v := Classify(e); v.Class != Transient {
		t.Errorf("class %q of a refusal without its end", v.Class)
	}
}

func TestClassify_PageUnder200(t *testing.T) {
	for _, e := range []Evidence{
		answer(200, "\n<!DOCTYPE html><title>Login</title>", "Content-Type", "text/event-stream"),
		answer(200, "<HTML>", "Content-Type", "application/json"),
		answer(200, "Please log in", "Content-Type", "text/html; charset=utf-8"),
	} {
		if v := Classify(e); v.Class != Unknown {
			t.Errorf("%s: class %q", e.Body, v.Class)
		}
	}
}

func TestClassify_ForPeople(t *testing.T) {
	v := Classify(answer(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`))
	if v.Code != "overloaded_error" || v.Message != "Overloaded" || !v.Overloaded {
		t.Errorf("%+v", v)
	}
	if v := Classify(answer(400, "no model given")); v.Message != "no model given" {
		t.Errorf("plain text is lost: %+v", v)
	}
	if v := Classify(answer(502, "<html>502</html>")); v.Message != "" {
		t.Errorf("a page is no message: %+v", v)
	}
}
