package policy

import "strings"

// words are the machine codes and types that providers use, by the class that they mean
// (docs/providers.md, section 4, orders 1 to 4). Spelling differs in case and in separators only:
// see fold.
var words = index(map[Class][]string{
	Policy: {
		"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation", "invalid_prompt",
		"bio_policy", "cyber_policy", "moderation_blocked", "safety", "prohibited_content",
	},
	Quota: {
		"insufficient_quota", "billing_error", "billing_hard_limit_reached", "blocked_api_access",
		"usage_limit_reached", "account_not_active", "enforced_spend_limit_reached",
		"ServiceQuotaExceeded", "insufficient_credits", "payment_required",
	},
	Auth: {
		"invalid_api_key", "api_key_invalid", "api_key_expired", "expired_api_key", "authentication_error",
		"invalid_authentication", "unauthenticated", "unauthorized", "permission_error", "permission_denied",
		"forbidden", "request_forbidden", "access_denied", "invalid_token", "expired_token", "token_expired",
		"UnrecognizedClient", "InvalidClientTokenId", "InvalidSignature", "IncompleteSignature",
		"SignatureDoesNotMatch", "MissingAuthenticationToken", "NotAuthorized",
		"unsupported_country_region_territory",
	},
	Rate: {
		"rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED", "Throttling", "throttled",
		"too_many_requests", "too_many_requests_error", "requests", "tokens",
	},
	Transient: {
		"server_error", "api_error", "overloaded_error", "overloaded", "server_is_overloaded",
		"engine_overloaded", "engine_overloaded_error", "slow_down", "timeout", "timeout_error",
		"request_timeout", "internal", "internal_error", "internal_failure", "internal_server",
		"internal_server_error", "unavailable", "service_unavailable", "service_unavailable_error",
		"aborted", "conflict_error", "deadline_exceeded", "upstream_error", "ModelTimeout", "ModelNotReady",
		"modelStreamError",
	},
	Request: {
		"invalid_request_error", "context_length_exceeded", "INVALID_ARGUMENT", "FAILED_PRECONDITION",
		"OUT_OF_RANGE", "UNIMPLEMENTED", "bad_request", "bad_request_error", "not_found", "not_found_error",
		"model_not_found", "request_too_large", "image_too_large", "DeploymentNotFound", "Validation",
		"ResourceNotFound",
	},
})

// vague are words that say only that a request was refused: here the text may know better.
var vague = set("invalid_request_error", "INVALID_ARGUMENT", "FAILED_PRECONDITION", "Validation",
	"bad_request", "bad_request_error")

// overloads are the words that are answered with 529.
var overloads = set("overloaded_error", "overloaded", "server_is_overloaded", "engine_overloaded",
	"engine_overloaded_error")

// modelStreamError is Bedrock's wrapper: the model's own status is in originalStatusCode.
const modelStreamError = "modelstreamerror"

// Text decides only where a provider gives nothing else. Lower case.
var (
	quotaTexts = []string{"credit balance is too low", "api usage limits"}
	authTexts  = []string{
		"api key not valid", "api key expired", "api key has expired", "invalid api key",
		"incorrect api key", "invalid x-api-key", "security token included in the request",
		"signature we calculated does not match", "signature expired", "signature not yet current",
		"location is not supported", "country, region, or territory not supported",
	}
	capacityTexts = []string{"capacity", "overloaded", "high demand"}
)

// statusClass is what a status alone says (orders 3 and 5 to 8).
func statusClass(status int) Class {
	switch status {
	case 401, 403:
		return Auth
	case 402:
		return Quota
	case 429:
		return Rate
	case 408, 409, 425, 502, 503, 504, 520, 521, 522, 523, 524, 525, 526, 527, 529:
		return Transient
	case 400, 404, 405, 410, 413, 415, 422:
		return Request
	}
	return Unknown
}

// fold makes the spellings of one word equal: ThrottlingException, throttlingException,
// com.amazon#ThrottlingException:http://… and THROTTLING are the same.
func fold(word string) string {
	word, _, _ = strings.Cut(clip(word, 256), ":")
	word = word[strings.LastIndexByte(word, '#')+1:]
	word = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return -1
	}, word)
	return strings.TrimSuffix(word, "exception")
}

func index(byClass map[Class][]string) map[string]Class {
	m := make(map[string]Class)
	for class, words := range byClass {
		for _, word := range words {
			m[fold(word)] = class
		}
	}
	return m
}

func set(words ...string) map[string]bool {
	m := make(map[string]bool)
	for _, word := range words {
		m[fold(word)] = true
	}
	return m
}

func containsAny(text string, phrases []string) bool {
	for _, phrase := range phrases {
		if strings.Contains(text, phrase) {
			return true
		}
	}
	return false
}

// clip is at most n bytes of s, whole characters only.
func clip(s string, n int) string { return strings.ToValidUTF8(s[:min(len(s), n)], "") }
