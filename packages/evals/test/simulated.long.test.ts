import './simulated.test.ts'
