/** `npm run examples`: runs the examples, or those whose name contains an argument. */
import { findExamples, runExample } from './examples/example.ts'

const wanted = process.argv.slice(2)
const examples = findExamples().filter(
  ({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part)),
)
if (examples.length === 0) {
  console.error(
    `No example matches ${wanted.join(', ')}. There are: ${findExamples()
      .map(({ name }) => name)
      .join(', ')}.`,
  )
  process.exitCode = 1
}

for (const example of examples) {
  console.log(`--- examples/${example.name}.ts`)
  const { code, output } = await runExample(example)
  console.log(`${output}\n`)
  if (code !== 0) process.exitCode = 1
}
