import type { RunnableTool } from '@skein/runtime'
import { type Outside, outside } from '../outside.ts'

/** A write that a person has to approve, and that can be undone. */
const pay: RunnableTool<Outside> = outside('pay', {
  risk: 'write_high_risk',
  rollback: ({ ref }) => ({ type: 'tool_call', target: 'undo', payload: { ref } as never }),
})

export default pay
