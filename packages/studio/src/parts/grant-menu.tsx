import type { ReactNode } from 'react'
import type { WaitingItem } from '@skein/runtime'
import { KeyRound } from '../icons/lucide.ts'
import { callOf } from './answer-forms.tsx'
import { DecisionButton } from './decision-button.tsx'
import { line } from './format.ts'
import { Menu } from './menu.tsx'

const HOUR_MS = 3_600_000

/** The durations that are offered; the server allows at most a day. */
const TIMES: readonly (readonly [string, number])[] = [
  ['15 minutes', HOUR_MS / 4],
  ['1 hour', HOUR_MS],
  ['8 hours', 8 * HOUR_MS],
  ['24 hours', 24 * HOUR_MS],
]

/** Approves a call and, at the same time, all further calls of its tool in its thread until a chosen time. */
export function GrantMenu({
  item,
  isDisabled,
  approve,
}: {
  readonly item: WaitingItem
  readonly isDisabled: boolean
  readonly approve: (grant: { readonly forMs: number; readonly words: string }) => void
}): ReactNode {
  return (
    <Menu
      isDisabled={isDisabled}
      label={
        <>
          <KeyRound size={14} aria-hidden /> Approve temporarily
        </>
      }
    >
      {(close) =>
        TIMES.map(([words, forMs]) => (
          <DecisionButton
            key={words}
            call={callOf(item)}
            className="menu-item"
            onDecide={() => {
              close()
              approve({ forMs, words: `for ${words}` })
            }}
          >
            <b>Approve for {words}</b>
            <span className="soft small">
              Approves this call and every further call of {line(item.toolName, 40)} in this thread
              until {endOf(forMs)}. Signed in your name; you can revoke it earlier.
            </span>
          </DecisionButton>
        ))
      }
    </Menu>
  )
}

function endOf(forMs: number): string {
  return new Date(Date.now() + forMs).toLocaleTimeString([], { timeStyle: 'short' })
}
