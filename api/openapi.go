package api

import _ "embed" // for the document

// OpenAPI is the HTTP contract for machines: openapi.yaml as it is in the repository.
//
//go:embed openapi.yaml
var OpenAPI []byte
