import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Writes an agent that answers everything with one text. */
export function writeEchoAgent(folder: string, answer: string): void {
  mkdirSync(join(folder, 'agents'), { recursive: true })
  writeFileSync(
    join(folder, 'agents', 'echo.ts'),
    `import { defineAgent, definePrompt } from '@skein/runtime'
import { says, scripted } from '@skein/ai/testing'

const prompt = definePrompt({
  name: 'echo',
  prompt: 'Answer.',
  model: scripted(() => says(${JSON.stringify(answer)})),
})

export default defineAgent({ name: 'echo', sideA: { prompt } })
`,
  )
}
