// The whole counts of file-checkpoints.test.ts: see `countOf`.
import './file-checkpoints.test.ts'
