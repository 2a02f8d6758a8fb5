// Runs kill-resume.test.ts with full counts: see `countOf`.
import './kill-resume.test.ts'
