// Package plot draws bars and lines as SVG that reads well on a light and on a
// dark page. It draws what benchmarks report and no more: no interaction, no
// fonts of its own, no dependency.
//
// Invariants:
//   - The same chart gives the same bytes, so plots can be kept under version control.
//   - A value that is not a number is a gap, never a zero.
package plot
