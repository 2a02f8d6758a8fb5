import type { Client } from '@skein/server/client'
import { withConnection } from '../connect/connect.ts'
import {
  type Command,
  defineCommand,
  ExitCode,
  JSON_OPTION,
  SERVER_OPTIONS,
} from '../terminal/command.ts'
import { lineText, textTable } from '../terminal/table.ts'

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
            `tenant ${lineText(tenant)}: ${erased} threads erased, ${removed} removed, ${kept} kept because they were running, ${failed} failed`,
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
