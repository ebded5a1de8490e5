package policy

import (
	"net/http"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

func TestHint_FirstFormThatMakesSense(t *testing.T) {
	const date = "Mon, 30 Nov 2026 10:00:00 GMT"
	for _, c := range []struct {
		name   string
		header map[string]string
		body   string
		want   time.Duration
	}{
		{"none", nil, ``, 0},
		{"milliseconds first", map[string]string{"retry-after-ms": "1040", "x-ms-retry-after-ms": "5", "retry-after": "2"}, ``, 1040 * time.Millisecond},
		{"Azure's milliseconds next", map[string]string{"x-ms-retry-after-ms": "700", "retry-after": "2"}, ``, 700 * time.Millisecond},
		{"seconds", map[string]string{"retry-after": " 2 "}, `{"error":{"details":[{"retryDelay":"9s"}]}}`, 2 * time.Second},
		{"fractions", map[string]string{"retry-after": "1.5"}, ``, 1500 * time.Millisecond},
		{"a date", map[string]string{"retry-after": "Mon, 30 Nov 2026 10:00:03 GMT", "date": date}, ``, 3 * time.Second},
		{"an old form of date", map[string]string{"retry-after": "Monday, 30-Nov-26 10:00:03 GMT", "date": date}, ``, 3 * time.Second},
		{"a past date", map[string]string{"retry-after": "Mon, 30 Nov 2026 09:00:00 GMT", "date": date}, ``, 0},
		{"a date without a date", map[string]string{"retry-after": "Mon, 30 Nov 2026 10:00:03 GMT"}, ``, 0},
		{"a date in a million years", map[string]string{"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT", "date": date}, ``, maxHint},
		{"RetryInfo", map[string]string{"retry-after": "soon"}, `{"error":{"details":[{"@type":"x"},{"retryDelay":"3.5s"}]}}`, 3500 * time.Millisecond},
		{"RetryInfo in an array", nil, `[{"error":{"details":[{"retryDelay":"37s"}]}}]`, 37 * time.Second},
		{"RetryInfo in fields", nil, `{"error":{"details":[{"retryDelay":{"seconds":"3","nanos":500000000}}]}}`, 3500 * time.Millisecond},
		{"a limit's reset", map[string]string{"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, ``, 6 * time.Minute},
		{"a limit's reset in ms", map[string]string{"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20ms"}, ``, 20 * time.Millisecond},
		{"a limit's reset in minutes and fractions", map[string]string{"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "2m59.56s"}, ``, 179560 * time.Millisecond},
		{"a limit's reset in plain seconds", map[string]string{"x-ratelimit-remaining-tokens-minute": "0", "x-ratelimit-reset-tokens-minute": "7.5"}, ``, 7500 * time.Millisecond},
		{"a limit that is not used up", map[string]string{"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "6m0s"}, ``, 0},
		{"a limit of which nothing is said", map[string]string{"x-ratelimit-reset-requests": "6m0s"}, ``, 0},
		{"the last of two used up limits", map[string]string{
			"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1s",
			"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "4s"}, ``, 4 * time.Second},
		{"text", nil, `{"error":{"message":"Please try again in 1.2s."}}`, 1200 * time.Millisecond},
		{"text, ms", nil, `{"error":{"message":"Try again in 20ms. Visit"}}`, 20 * time.Millisecond},
		{"text, composed", nil, `{"error":{"message":"try again in 6m0s"}}`, 6 * time.Minute},
		{"text, Groq", nil, `{"error":{"message":"Please try again in 7m12.96s. Need more?"}}`, 432960 * time.Millisecond},
		{"text, words", nil, `{"error":{"message":"Try again in 12 seconds."}}`, 12 * time.Second},
		{"text, two words", nil, `{"error":{"message":"try again in 1 minute 5 seconds"}}`, 65 * time.Second},
		{"text, no unit", nil, `{"error":{"message":"try again in 12 ways"}}`, 0},
		{"text that is no JSON", nil, `try again in 3s`, 3 * time.Second},
		{"zero gives way", map[string]string{"retry-after": "0"}, `{"error":{"message":"try again in 2s"}}`, 2 * time.Second},
		{"negative", map[string]string{"retry-after": "-5"}, ``, 0},
		{"not a number", map[string]string{"retry-after": "NaN"}, ``, 0},
		{"infinite", map[string]string{"retry-after": "Inf"}, ``, 0},
		{"hexadecimal", map[string]string{"retry-after": "0x10p1"}, ``, 0},
		{"too large for a duration", map[string]string{"retry-after": "1e300"}, ``, maxHint},
		{"too large for a float", map[string]string{"retry-after": "1e999"}, ``, maxHint},
		{"too small for a float", map[string]string{"retry-after": "-1e999"}, ``, 0},
		{"negative RetryInfo", nil, `{"error":{"details":[{"retryDelay":"-3s"}]}}`, 0},
		{"negative reset", map[string]string{"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "-3s"}, ``, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := answer(429, c.body)
			for name, value := range c.header {
				e.Header.Set(name, value)
			}
			if got := Classify(e).Hint; got != c.want {
				t.Errorf("hint %v, want %v", got, c.want)
			}
		})
	}
}

func TestHint_NoHeader(t *testing.T) {
	if d := hint(nil, fault{}); d != 0 {
		t.Errorf("hint %v without any evidence", d)
	}
	if d := limitReset(http.Header{"x-ratelimit-reset-a": {"1s"}}); d != 0 {
		t.Errorf("hint %v", d)
	}
	if d := googleDelay(gjson.Result{}); d != 0 {
		t.Errorf("hint %v", d)
	}
}
