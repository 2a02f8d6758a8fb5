import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { project } from './project.ts'

test('the compiler names the right property, field and setting', { timeout: 60_000 }, () => {
  const cwd = project({
    'wrong.ts': [
      `import { tool, llm } from '@skein/ai'`,
      `import { openai } from '@skein/ai/openai'`,
      `import { defineAgent, definePrompt } from '@skein/runtime'`,
      `import { z } from 'zod'`,
      `export const look: unknown = tool({ name: 'l', description: '', parameters: z.object({ order: z.string() }), run: ({ ordr }) => ordr })`,
      `export const prompt: unknown = definePrompt({ name: 'p', promt: 'P.', model: openai('gpt-5') })`,
      `export const agent: unknown = defineAgent({ name: 'a', sideA: { prompt: 'p' }, budget: { maxCostUsdd: 1 } })`,
      `export const model: unknown = llm({ model: openai('gpt-5'), maxOutputToken: 5 })`,
      ``,
    ].join('\n'),
    'tsconfig.json': JSON.stringify({
      compilerOptions: {
        noEmit: true,
        strict: true,
        module: 'nodenext',
        target: 'es2024',
        skipLibCheck: true,
        allowImportingTsExtensions: true,
        customConditions: ['@skein/source'],
        types: ['node'],
      },
      files: ['wrong.ts'],
    }),
  })
  let printed = ''
  try {
    execFileSync(join(cwd, 'node_modules', '.bin', 'tsc'), ['-p', cwd], { encoding: 'utf8' })
  } catch (error) {
    printed = (error as { stdout: string }).stdout
  }
  const own = printed.split('\n').filter((line) => line.includes('wrong.ts('))
  const said = (line: number): string =>
    own.filter((text) => text.includes(`wrong.ts(${line},`)).join('\n')
  expect(said(5)).toContain(`Property 'ordr' does not exist on type '{ order: string; }'`)
  expect(said(6)).toMatch(/'promt' does not exist|did you mean to write 'prompt'/i)
  expect(said(7)).toMatch(/did you mean to write 'maxCostUsd'/i)
  expect(said(8)).toMatch(/did you mean to write 'maxOutputTokens'/i)
})
