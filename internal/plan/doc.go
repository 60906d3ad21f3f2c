// Package plan changes a cluster in steps that can be taken back, and never
// loses count of them.
//
// A Plan is stages of Steps. A Step is a value: what it does and risks, in
// words, and the functions that do it. The Engine runs steps one after the
// other and writes a Journal ahead of each: what was there before is recorded
// before anything is changed, and that it was done only after it was verified.
// So a process may be killed between any two instructions. The next one, which
// knows the journal and the cluster and nothing else, tells where the plan
// stands and goes on, or goes back to where it began.
//
// For that, each Step keeps four promises:
//
//   - Ready and Capture change nothing.
//   - Apply brings about the step's effect from any state between the captured
//     one and its effect: it may have been run before, to its end or only half.
//   - Undo brings back the captured state from any of the same states.
//   - Verify and Undone look at the cluster, not at what Apply or Undo thought.
//
// The journal is data. What is read from it is where the plan stands and what
// Capture has recorded; what is run is only what this program's Plan holds. The
// journal's first entry has the plan's digest, over its inputs and the list of
// its steps, and another digest stops the engine. What a step reads out of its
// captured record it must check as it would check any other input.
//
// The package knows nothing of Cilium, of Kubernetes or of checks.
package plan
