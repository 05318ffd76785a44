// Gridlines and their numbers below a chart.

export interface Tick {
  at: number;
  text: string;
}

export function Axis({ ticks, height, inner }: { ticks: readonly Tick[]; height: number; inner: number }) {
  return (
    <g>
      {ticks.map(({ at, text }) => (
        <g key={at} transform={`translate(${at} 0)`}>
          <line class="hta-grid" y1={0} y2={height} />
          <text y={height + 15} text-anchor={at < 16 ? "start" : at > inner - 16 ? "end" : "middle"}>
            {text}
          </text>
        </g>
      ))}
    </g>
  );
}
