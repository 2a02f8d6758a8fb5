import type { ReactNode } from 'react'
import { CircleAlert, CircleCheck, CircleX } from '../icons/lucide.ts'
import type { GateVerdict } from '../state/facts.ts'
import { Time } from './time.tsx'
import { line } from './format.ts'

/** What a decision of a gate means to a person. */
const DECISIONS: Readonly<
  Record<GateVerdict['decision'], readonly [string, 'good' | 'waits' | 'bad']>
> = {
  allow: ['allowed', 'good'],
  review: ['a person decides', 'waits'],
  deny: ['refused', 'bad'],
  delivered: ['delivered', 'good'],
  repair: ['sent back to the model', 'waits'],
  fail_safe: ['not delivered', 'bad'],
}

const GATES: Readonly<Record<string, string>> = {
  pre_action: 'Before the action',
  post_action: 'After the action',
  pre_deliver: 'Before delivery',
}

/**
 * The decisions of gates (checks before a call or an answer) as a list: which gate, its decision, its
 * reason codes, when.
 */
export function Checklist({ verdicts }: { readonly verdicts: readonly GateVerdict[] }): ReactNode {
  return (
    <ul className="check">
      {verdicts.map((verdict) => {
        const [word, tone] = DECISIONS[verdict.decision]
        const Icon = { good: CircleCheck, waits: CircleAlert, bad: CircleX }[tone]
        return (
          <li key={verdict.seq}>
            <Icon size={14} className={tone} aria-hidden />
            <span>
              {GATES[verdict.gate] ?? line(verdict.gate, 60)}: <b className={tone}>{word}</b>{' '}
              {verdict.reasonCodes.map((code) => (
                <code key={code} className="code-word">
                  {line(code, 80)}
                </code>
              ))}
            </span>
            <Time at={verdict.at} className="soft num small" />
          </li>
        )
      })}
    </ul>
  )
}
