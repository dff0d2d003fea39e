// Package prefetch asks the processor to bring memory near before it is
// needed, so that the misses of a batch overlap.
package prefetch
