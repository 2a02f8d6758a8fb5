// The whole counts of versions.test.ts: see `countOf`.
import './versions.test.ts'
