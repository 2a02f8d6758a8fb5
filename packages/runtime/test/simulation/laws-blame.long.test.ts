// The whole counts of laws-blame.test.ts: see `countOf`.
import './laws-blame.test.ts'
