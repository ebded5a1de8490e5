// Package packages renders and lints what deploy/ holds, with the libraries of the tools that would
// install it. It is a module of its own: Helm brings much of Kubernetes with it.
package packages
