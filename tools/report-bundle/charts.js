// The parts of ECharts that reports use. A new kind of chart or component is a line here.
import * as echarts from 'echarts/core';
import {BarChart, HeatmapChart, LineChart, ScatterChart} from 'echarts/charts';
import {
  DataZoomComponent, GridComponent, LegendComponent, TooltipComponent, VisualMapComponent,
} from 'echarts/components';
import {CanvasRenderer, SVGRenderer} from 'echarts/renderers';

echarts.use([
  BarChart, HeatmapChart, LineChart, ScatterChart,
  DataZoomComponent, GridComponent, LegendComponent, TooltipComponent, VisualMapComponent,
  CanvasRenderer, SVGRenderer,
]);
window.echarts = echarts;
