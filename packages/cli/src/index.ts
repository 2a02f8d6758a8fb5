export { main } from './main.ts'
export { ExitCode } from './terminal/command.ts'
