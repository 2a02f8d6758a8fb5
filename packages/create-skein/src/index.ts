export { createSkein } from './main.ts'
