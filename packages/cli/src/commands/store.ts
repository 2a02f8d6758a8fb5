import { join, resolve } from 'node:path'
import { storeFile } from '../connect/server-file.ts'
import type { Client } from '@skein/runtime/client'
import { withConnection } from '../connect/connect.ts'
import {
  type Command,
  defineCommand,
  ExitCode,
  JSON_OPTION,
  SERVER_OPTIONS,
} from '../terminal/command.ts'
import { lineText, textTable } from '../terminal/output.ts'

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

/** `skein limits` */
export const limits: Command = defineCommand({
  operands: [],
  options: { ...JSON_OPTION, ...SERVER_OPTIONS },
  examples: ['skein limits', "skein limits --json | jq '.spending[].refused'"],
  run: ({ values, output }) =>
    withConnection(values, output, async ({ client }) => {
      const report = await client.limits()
      const { spending, retention } = report
      if (values.json) output.json(report)
      else if (spending.length + retention.length === 0)
        output.say('Nothing was spent under a limit, and nothing was removed.')
      else {
        for (const line of textTable(spending.map(spendingRow))) output.line(line)
        for (const { tenant, erased, removed, kept, failed } of retention)
          output.line(
            `tenant ${lineText(tenant)}: ${erased} threads erased, ${removed} removed, ${kept} kept because they worked, ${failed} failed`,
          )
      }
      return ExitCode.Done
    }),
})

type Account = Awaited<ReturnType<Client['limits']>>['spending'][number]

function spendingRow({ tenant, user, until, spent, reserved, max, ...counts }: Account): string[] {
  const { refused, delayed } = counts
  const of = (limit: number | undefined): string => (limit === undefined ? '' : ` of ${limit}`)
  return [
    lineText(user === undefined ? `tenant ${tenant}` : `user ${user} of ${tenant}`),
    `until ${until}`,
    `$${Number((spent.costUsd + reserved.costUsd).toFixed(6))}${of(max.costUsd)}`,
    `${spent.tokens + reserved.tokens}${of(max.tokens)} tokens`,
    `${spent.inferences + reserved.inferences}${of(max.inferences)} requests`,
    `${refused} refused`,
    `${delayed} delayed`,
  ]
}
