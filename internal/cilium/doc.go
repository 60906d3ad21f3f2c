// Package cilium knows Cilium's versions, and no other package does. It has
// three tables: how an agent is asked (dialects), how its answers are read
// (decoders) and what a version can do (capabilities).
//
// # Decoders
//
// Each form of each answer has a function DecodeX(data) (X, error), pure and
// without a version as argument: the formats of 1.9 to 1.20 differ enough to be
// told apart by what they say. Text and JSON of one agent decode into the same
// value, save for what only one of them holds.
//
// A decoder never drops anything in silence. It returns what it could read and,
// if that is not all, a non-nil error beside it:
//
//   - *DecodeErrors lists the lines or members that no rule could read. The
//     value is evidence with gaps; the caller decides what it is still good for.
//   - ErrAgentDown, ErrCommandFailed and ErrEmpty, tested with errors.Is, say
//     that there is no answer at all. The value is then empty.
//
// Log lines, notes and exit statuses that collectors leave around an answer are
// known and passed over. Answers come from a cluster and are not trusted:
// nothing is allocated by a number that they name, and numbers that fit no field
// are errors.
package cilium
