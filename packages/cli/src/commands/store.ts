import { join, resolve } from 'node:path'
import { storeFile } from '../connect/server-file.ts'
import { type Command, defineCommand, ExitCode, JSON_OPTION } from '../terminal/command.ts'

/** `skein store verify` */
export const storeVerify: Command = defineCommand({
  operands: [
    {
      name: 'folder',
      description: 'Folder that holds skein.db. Default: .skein in this folder.',
      isOptional: true,
    },
  ],
  options: JSON_OPTION,
  examples: ['skein store verify', 'skein store verify ./backup --json'],
  async run({ values, operands: [folder], output }) {
    const path = folder === undefined ? storeFile() : join(resolve(folder), 'skein.db')
    const { verifyStore } = await import('@skein/runtime')
    const report = verifyStore(path)
    const { problems, threads, events, auditLines, blobs } = report
    if (values.json) output.json({ path, ...report })
    else {
      for (const problem of problems) output.line(problem)
      const read = `${threads} threads, ${events} events, ${auditLines} audit lines, ${blobs} contents`
      const found = problems.length === 0 ? 'no problem' : `${problems.length} problems`
      output.line(`${path}: ${read}; ${found}.`)
    }
    return problems.length === 0 ? ExitCode.Done : ExitCode.Failed
  },
})
