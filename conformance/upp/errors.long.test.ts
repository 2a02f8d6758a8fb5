// Runs errors.test.ts with full counts: see `countOf`.
import './errors.test.ts'
