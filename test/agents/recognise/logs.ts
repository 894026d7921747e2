/** Lines as programs write them, by program; names, addresses and texts are fictitious. */
export const logs: Readonly<Record<string, string>> = {
  iis: lines(
    '#Software: Microsoft Internet Information Services 10.0',
    '#Fields: date time s-ip cs-method cs-uri-stem sc-status time-taken cs(User-Agent)',
    '2026-11-17 10:00:00 10.0.0.5 GET /a 200 15 curl/8.0',
    '#Software: Microsoft Internet Information Services 10.0',
    '2026-11-17 10:00:01 10.0.0.5 GET /b 500 - Mozilla/5.0+(X11)',
  ),
  cloudfront: lines(
    '#Version: 1.0',
    '#Fields: date time x-edge-location sc-bytes c-ip cs(Host)',
    '2026-11-17\t10:00:00\tFRA2-C1\t120\t203.0.113.9\texample.com',
  ),
  csv: lines(
    'timestamp,level,order_id,message,duration',
    '2026-11-17 10:00:00,INFO,7,"hello, world",0.5',
    '2026-11-17 10:00:01,ERROR,8,plain,1',
    '2026-11-17 10:00:02,ERROR,9,"",1',
  ),
  eventcsv: lines(
    'Level,Date and Time,Source,Event ID,Task Category',
    'Error,11/17/2026 1:00:00 PM,Service Control Manager,7036,None,"The service entered the ""stopped"" state."',
  ),
  haproxy: lines(
    'Nov 17 10:00:00 lb1 haproxy[7]: 203.0.113.9:5123 [17/Nov/2026:10:00:00.123] http-in~ web/web1 0/0/1/20/21 200 512 - - ---- 2/2/0/0/0 0/0 "GET /a HTTP/1.1"',
    'Nov 17 10:00:01 lb1 haproxy[7]: 203.0.113.9:5124 [17/Nov/2026:10:00:01.123] http-in web/<NOSRV> 0/-1/-1/-1/+0 503 212 - - SC-- 2/2/0/0/0 0/0 {example.com} "<BADREQ>"',
    'Nov 17 10:00:02 lb1 haproxy[7]: Server web/web1 is DOWN.',
  ),
  alb: lines(
    'h2 2026-11-17T10:00:00.123456Z app/lb/50dc6c495c0c9188 203.0.113.9:5123 10.0.0.1:80 0.000 0.001 0.000 200 200 34 366 "GET https://example.com:443/a HTTP/2.0" "curl/8.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:x:targetgroup/y "Root=1-58337262" "example.com" "-"',
    'http 2026-11-17T10:00:01.123456Z app/lb/50dc6c495c0c9188 203.0.113.9:5123 - -1 -1 -1 503 - 34 366 "GET http://example.com:80/a HTTP/1.1" "-" - - - "Root=1-58337263" "-" "-"',
  ),
  envoy: lines(
    '[2026-11-17T10:00:00.123Z] "GET /a HTTP/1.1" 200 - via_upstream - "-" 0 120 4 3 "-" "curl/8.0" "9a0c" "shop.local" "10.0.0.1:80" outbound|80||shop.local',
    '[2026-11-17T10:00:01.123Z] "GET /b HTTP/1.1" 503 UF 0 91 4 - "-" "curl/8.0" "9a0d" "shop.local" "-"',
  ),
  asa: lines(
    '<166>Nov 17 2026 10:00:00: %ASA-6-302013: Built outbound TCP connection',
    '<164>Nov 17 2026 10:00:01: %ASA-4-106023: Deny tcp src outside:203.0.113.9/4444',
  ),
  auditd: lines(
    'type=SYSCALL msg=audit(1795015592.123:77): arch=c000003e syscall=59 success=yes',
    'type=USER_LOGIN msg=audit(1795015593.123:78): pid=9 uid=0 msg=\'op=login acct="root"\'',
  ),
  pybasic: lines(
    'INFO:root:started',
    'ERROR:app.db:failed',
    'Traceback (most recent call last):',
    '  File "x.py", line 3, in f',
    "KeyError: 'k'",
  ),
  rsyslog: lines(
    '2026-11-17T10:00:00.123456+01:00 web1 systemd[1]: Started a.',
    '2026-11-17T10:00:01.123456+01:00 web1 kernel: x',
    '2026-11-17T10:00:02.123456+01:00 web1 -- MARK --',
  ),
  tracelevel: lines(
    'INFO  [main] 2026-11-17 10:00:00,123 Service.java:3 - started',
    'ERROR [main] 2026-11-17 10:00:01,123 Service.java:4 - failed',
    'java.io.IOException: disk full',
    '\tat a.B.c(B.java:3)',
  ),
  combined: lines(
    '203.0.113.9 - - [17/Nov/2026:10:00:00 +0000] "GET /index.html HTTP/1.1" 200 1024 "-" "Mozilla/5.0 (X11; Linux x86_64)"',
    '203.0.113.10 - frank [17/Nov/2026:10:00:01 +0000] "POST /api/login HTTP/2.0" 302 0 "https://example.com/" "curl/8.0"',
    '203.0.113.9 - - [17/Nov/2026:10:00:02 +0000] "\\x16\\x03\\x01\\x00\\xEE" 400 157 "-" "-"',
    '203.0.113.9 - - [17/Nov/2026:10:00:03 +0000] "-" 400 0 "-" "-"',
    '203.0.113.9 - - [17/Nov/2026:10:00:04 +0000] "" 400 0 "-" "-"',
    '2001:db8::1 - - [17/Nov/2026:10:00:05 +0000] "GET /a b HTTP/1.1" 404 - "-" "x"',
  ),
  common: lines(
    '127.0.0.1 - - [10/Oct/2026:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326',
    '127.0.0.1 - frank [10/Oct/2026:13:55:37 -0700] "GET /x.gif HTTP/1.0" 404 -',
  ),
  vhost: lines(
    'example.com:443 203.0.113.9 - - [17/Nov/2026:10:00:00 +0000] "GET /index.html HTTP/1.1" 200 1024 "-" "Mozilla/5.0 \\"quoted\\""',
    'www.example.com:80 203.0.113.10 - - [17/Nov/2026:10:00:01 +0000] "GET / HTTP/1.1" 304 - "-" "curl/8.0"',
  ),
  extra: lines(
    '203.0.113.9 - - [17/Nov/2026:10:00:00 +0000] "GET /index.html HTTP/1.1" 200 1024 "-" "Mozilla/5.0" "198.51.100.7" rt=0.123 uct="0.001" urt="0.120, 0.003"',
    '203.0.113.10 - - [17/Nov/2026:10:00:01 +0000] "GET / HTTP/1.1" 304 0 "-" "curl/8.0" "-" rt=0.000 uct="-" urt="-"',
    '203.0.113.11 - - [17/Nov/2026:10:00:01 +0000] "" 400 0 "-" "-" "-" rt=0.000 uct="-" urt="-"',
  ),
  json: lines(
    '{"@timestamp":"2026-11-17T10:00:00.123Z","level":"info","msg":"started","http":{"request":{"method":"GET","id":"a1"},"status":200},"dur":1.5,"ok":true,"tags":["a"]}',
    '{"@timestamp":"2026-11-17T10:00:01.123Z","level":"warn","msg":"slow","http":{"request":{"method":"POST","id":"a2"},"status":503},"dur":2,"ok":false,"userId":"0012"}',
  ),
  pino: lines(
    '{"level":30,"time":1795015592123,"pid":1,"hostname":"web1","msg":"hello","req":{"id":1,"method":"GET","url":"/"},"responseTime":12}',
    '{"level":50,"time":1795015593123,"pid":1,"hostname":"web1","err":{"type":"Error","message":"x","stack":"Error: x\\n at y"},"msg":"failed"}',
  ),
  zapjson: lines(
    '{"level":"info","ts":1795015592.1234567,"caller":"zap/main.go:12","msg":"hello","n":3}',
    '{"level":"error","ts":1795015593.5,"caller":"zap/main.go:13","msg":"bad","stacktrace":"main.main\\n\\t/x"}',
  ),
  slogjson: lines(
    '{"time":"2026-11-17T10:00:00.123456789+01:00","level":"INFO","source":{"function":"main.main","file":"main.go","line":10},"msg":"hello","count":3}',
  ),
  logfmt: lines(
    'time="2026-11-17T10:00:00Z" level=info msg="Server started" port=8080 duration=1.5ms',
    'time="2026-11-17T10:00:01Z" level=warning msg="it\'s \\"bad\\"" port=8081 err="x y"',
  ),
  slog: lines(
    'time=2026-11-17T10:00:00.123+01:00 level=INFO msg=hello count=3 user="a b"',
    'time=2026-11-17T10:00:01.123+01:00 level=ERROR msg="failed to x" err="boom" count=4',
  ),
  linuxsys: lines(
    'Jun  9 06:06:20 combo syslogd 1.4.1: restart.',
    'Jun 14 15:16:01 combo sshd(pam_unix)[19939]: authentication failure; logname= uid=0',
    'Jun 15 02:04:59 combo kernel: klogd 1.4.1, log source = /proc/kmsg started.',
    'Jun 15 02:05:00 combo last message repeated 2 times',
  ),
  sys5424: lines(
    "<34>1 2026-10-11T22:14:15.003Z mymachine.example.com su - ID47 - 'su root' failed for lonvick on /dev/pts/8",
    '<165>1 2026-10-11T22:14:15.003Z mymachine.example.com evntslog 123 ID47 [exampleSDID@32473 iut="3" eventSource="App\\]x" eventID="1011"] An application event',
  ),
  sysiso: lines(
    '2026-11-17T10:00:00.123456+01:00 web1 sshd[1234]: Accepted publickey for root',
    '2026-11-17T10:00:01.123456+01:00 web1 kernel: [123.4] eth0: link up',
    '2026-11-17T10:00:02.123456+01:00 web1 systemd[1]: Started foo.service.',
  ),
  golog: lines(
    '2026/11/17 10:00:00 listening on :8080',
    '2026/11/17 10:00:01 http: TLS handshake error from 10.0.0.1:1234: EOF',
    '2026/11/17 10:00:02 panic: something',
    'goroutine 1 [running]:',
    'main.main()',
    '\t/src/main.go:10 +0x20',
    '2026/11/17 10:00:05 done',
  ),
  golong: lines(
    '2026/11/17 10:00:00.123456 main.go:23: listening on :8080',
    '2026/11/17 10:00:01.123456 server.go:99: TLS handshake error from 10.0.0.1:1234: EOF',
  ),
  zapdev: lines(
    '2026-11-17T10:00:00.123Z\tINFO\tmylogger\tzap/main.go:12\thello\t{"k": "v"}',
    '2026-11-17T10:00:00.124Z\tERROR\tmylogger\tzap/main.go:14\tbad',
  ),
  logback: lines(
    '2026-11-17 10:00:00.123 [main] INFO  com.example.App - Starting',
    '2026-11-17 10:00:01.123 [http-nio-8080-exec-1] ERROR com.example.web.Ctl - Failed: x',
    'java.lang.IllegalStateException: boom',
    '\tat com.example.Foo.bar(Foo.java:12)',
    '\tat com.example.Foo.baz(Foo.java:22)',
    'Caused by: java.lang.NullPointerException',
    '\t... 12 more',
    '2026-11-17 10:00:02.123 [main] DEBUG com.example.App - Done',
  ),
  spring: lines(
    '2026-11-17T10:00:00.123+01:00  INFO 12345 --- [           main] c.e.demo.DemoApplication                 : Starting DemoApplication',
    '2026-11-17T10:00:01.123+01:00  WARN 12345 --- [nio-8080-exec-1] o.s.w.s.DispatcherServlet                : Completed',
    '2026-11-17T10:00:02.123+01:00 ERROR 12345 --- [nio-8080-exec-1] o.a.c.c.C.[.[.[/].[dispatcherServlet]    : Servlet.service() threw',
    'java.lang.RuntimeException: x',
    '\tat a.b.C.d(C.java:1)',
  ),
  log4j: lines(
    '2026-11-17 10:00:00,123 INFO [main] org.apache.X: hello world',
    '2026-11-17 10:00:01,123 WARN [pool-1-thread-2] org.apache.Y: other thing',
  ),
  jul: lines(
    'Nov 17, 2026 10:00:00 AM com.example.Foo main',
    'INFO: hello',
    'Nov 17, 2026 10:00:01 AM com.example.Foo main',
    'SEVERE: bad',
    'java.lang.X: y',
    '\tat z',
  ),
  tomcat: lines(
    '17-Nov-2026 10:00:00.123 INFO [main] org.apache.catalina.startup.VersionLoggerListener.log Server version name: Apache Tomcat/9.0',
    '17-Nov-2026 10:00:01.123 SEVERE [main] org.apache.catalina.core.StandardContext.startInternal One or more listeners failed',
  ),
  pylog: lines(
    '2026-11-17 10:00:00,123 - myapp.module - INFO - Starting up',
    '2026-11-17 10:00:01,123 - myapp.db - ERROR - Failed',
    'Traceback (most recent call last):',
    '  File "x.py", line 1, in <module>',
    '    raise ValueError("x")',
    'ValueError: x',
    '2026-11-17 10:00:02,123 - myapp.db - WARNING - again',
  ),
  gunicorn: lines(
    '[2026-11-17 10:00:00 +0000] [1234] [INFO] Starting gunicorn 20.1.0',
    '[2026-11-17 10:00:01 +0000] [1234] [INFO] Listening at: http://127.0.0.1:8000 (1234)',
    '[2026-11-17 10:00:02 +0000] [1240] [ERROR] Booting worker with pid: 1240',
  ),
  celery: lines(
    '[2026-11-17 10:00:00,123: INFO/MainProcess] Connected to redis',
    '[2026-11-17 10:00:01,123: WARNING/ForkPoolWorker-1] Task x succeeded',
  ),
  loguru: lines(
    '2026-11-17 10:00:00.123 | INFO     | __main__:<module>:1 - hello',
    '2026-11-17 10:00:01.123 | WARNING  | app.db:connect:44 - slow',
  ),
  pg: lines(
    '2026-11-17 10:00:00.123 UTC [1234] LOG:  database system is ready',
    '2026-11-17 10:00:01.123 UTC [1240] postgres@shop ERROR:  relation "x" does not exist at character 15',
    '2026-11-17 10:00:01.123 UTC [1240] postgres@shop STATEMENT:  SELECT *',
    '\tFROM x',
  ),
  pg2: lines(
    '2026-11-17 10:00:00.123 CET [1234]: [1-1] user=,db=,app=,client= LOG:  database system is ready',
    '2026-11-17 10:00:01.123 CET [1240]: [2-1] user=bob,db=shop,app=psql,client=10.0.0.1 ERROR:  relation',
  ),
  apache24: lines(
    '[Wed Oct 11 14:32:52.123456 2026] [core:error] [pid 35708:tid 4328636416] [client 72.15.99.187:1234] AH00124: Request exceeded',
    '[Wed Oct 11 14:32:53.123456 2026] [mpm_event:notice] [pid 35708:tid 4328636416] AH00489: Apache/2.4 configured',
  ),
  nginxerr: lines(
    '2026/11/17 10:00:00 [error] 1234#1234: *5 open() "/x" failed (2: No such file or directory), client: 1.2.3.4, server: x, request: "GET / HTTP/1.1"',
    '2026/11/17 10:00:01 [notice] 1234#1234: signal process started',
  ),
  klog: lines(
    'I1117 10:00:00.123456   12345 server.go:123] Starting kubelet',
    'E1117 10:00:01.123456   12345 kubelet.go:99] failed "err"="x"',
  ),
  android: lines(
    '03-17 16:13:38.811  1702  2395 D WindowManager: printFreezingDisplayLogsopening app wtoken',
    '03-17 16:13:38.819  1702  8671 D PowerManagerService: acquire lock=233570404, flags=0x1, tag="View Lock"',
    '03-17 16:13:38.820  1702  8671 I am_wtf tag: x',
  ),
  spark: lines(
    '17/06/09 20:10:40 INFO executor.CoarseGrainedExecutorBackend: Registered signal handlers for [TERM, HUP, INT]',
    '17/06/09 20:10:45 INFO spark.SecurityManager: Changing view acls to: yarn,curi',
  ),
  windows: lines(
    '2016-09-28 04:30:30, Info                  CBS    Loaded Servicing Stack v6.1.7601.23505 with Core: C:\\Windows\\winsxs\\amd64',
    '2016-09-28 04:30:31, Info                  CSI    00000001@2016/9/27:20:30:31.455 WcpInitialize (wcp.dll version 0.0.0.6) called',
  ),
  zookeeper: lines(
    '2015-07-29 17:41:44,747 - INFO  [QuorumPeer[myid=1]/0:0:0:0:0:0:0:0:2181:FastLeaderElection@774] - Notification time out: 3200',
    '2015-07-29 19:04:12,394 - INFO  [/10.10.34.11:3888:QuorumCnxManager$Listener@493] - Received connection request /10.10.34.11:45307',
    '2015-07-29 19:29:56,407 - WARN  [SendWorker:188978561024:QuorumCnxManager$SendWorker@679] - Interrupted while waiting for message on queue',
  ),
  health: lines(
    '20171223-22:15:29:606|Step_LSC|30002312|onStandStepChanged 3579',
    '20171223-22:15:29:615|Step_LSC|30002312|onExtend:1514038530000 14 0 4',
    '20171224-0:7:20:44|Step_StandReportReceiver|30002312|REPORT : 7007 5002 150089 240',
  ),
  openstack: lines(
    'nova-api.log.1.2017-05-16_13:53:08 2017-05-16 00:00:00.008 25746 INFO nova.osapi_compute.wsgi.server [req-38101a0b-2096-447d-96ea-a692162415ae 113d3a99c3da401fbd62cc2caa5b96d2 54fadb412c4e40cdbaed9335e4c35a9e - - -] 10.11.10.1 "GET /v2/54fadb412c4e40cdbaed9335e4c35a9e/servers/detail HTTP/1.1" status: 200 len: 1893 time: 0.2477829',
    'nova-compute.log.1.2017-05-16_13:55:31 2017-05-16 00:00:04.500 2931 INFO nova.compute.manager [req-3ea4052c-895d-4b64-9e2d-04d64c4d94ab - - - - -] [instance: b9000564-fe1a-409b-b8cc-1e88b294cd1d] VM Started (Lifecycle Event)',
  ),
  ruby: lines(
    'I, [2026-11-17T10:00:00.123456 #1234]  INFO -- : Started GET "/" for 127.0.0.1',
    'E, [2026-11-17T10:00:01.123456 #1234] ERROR -- prog: boom',
  ),
  mysql: lines(
    '2026-11-17T10:00:00.123456Z 0 [Warning] [MY-010068] [Server] CA certificate ca.pem is self signed.',
    '2026-11-17T10:00:01.123456Z 12 [Note] [MY-010051] [Server] Event Scheduler',
  ),
  levelprogram: lines(
    '2026-11-17T10:00:00Z INFO server: listening on 8080',
    '2026-11-17T10:00:01Z WARN server: slow request',
    '2026-11-17T10:00:02Z ERROR worker: job failed',
  ),
  stamplevel: lines(
    'Nov 17 10:00:00 INFO server: listening on 8080',
    'Nov 17 10:00:01 ERROR worker: job failed',
  ),
  dovecot: lines(
    'Nov 17 10:00:00 imap-login: Info: Login: user=<u1>, method=PLAIN',
    'Nov 17 10:00:01 imap(u1): Info: Logged out in=12 out=34',
    'Nov 17 10:00:02 imap-login: Info: Login: user=<u2>, method=PLAIN',
  ),
  infohost: lines('Nov 17 10:00:00 info sshd[7]: started', 'Nov 17 10:00:01 info kernel: x'),
  plain: lines('this is a log of nothing', 'another line here'),
  uvicorn: lines(
    'INFO:     Started server process [1234]',
    'INFO:     127.0.0.1:54321 - "GET / HTTP/1.1" 200 OK',
    'ERROR:    Exception in ASGI application',
  ),
};

function lines(...texts: readonly string[]): string {
  return texts.map((text) => `${text}\n`).join('');
}
