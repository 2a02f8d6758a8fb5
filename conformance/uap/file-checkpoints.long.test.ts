// Runs file-checkpoints.test.ts with full counts: see `countOf`.
import './file-checkpoints.test.ts'
