export { main } from './main.ts'
export { ExitCode } from './exit-code.ts'
