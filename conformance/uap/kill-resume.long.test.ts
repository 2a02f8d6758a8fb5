// The whole counts of kill-resume.test.ts: see `countOf`.
import './kill-resume.test.ts'
